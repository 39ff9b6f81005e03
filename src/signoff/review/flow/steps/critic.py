"""One critic's review of the artifact against constraints, checked before it counts.

A reply that cannot be parsed, a verdict that contradicts its findings and quotes that do not
occur in the artifact are sent back to the critic once, all together. If the reply is still
unusable, a human decides; quotes that still do not occur are only marked. What was valid in an
answer that was sent back counts until the critic withdraws it with a reason.

Critics are noisy, and every false alarm costs a round. So another agent may have to confirm severe
findings before they block: it gets only the passage, the rule and the claim. A finding that it does
not confirm is recorded and set aside. An answer that cannot be read confirms: a real defect must
not pass because of a bad answer. The same question is asked before a judge's dismissal of a
CRITICAL finding counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from typing import Any

from signoff.core.checked import CheckedReply, Otherwise
from signoff.core.context import StepContext
from signoff.core.digest import digest
from signoff.core.effects import ProductPrompt, Reply
from signoff.core.errors import AgentBadOutput
from signoff.core.questions import Option
from signoff.core.requests import RETRY, Choice, Request
from signoff.core.severity import WORST
from signoff.core.words import FindingStatus, Label
from signoff.review.flow.model import Flow, VerifyConfig, WorkflowStep
from signoff.review.flow.state import VERIFY, FlowState, files_label, shortened
from signoff.review.flow.steps.material import analysis
from signoff.review.flow.steps.sign_off import judging_material
from signoff.review.pure import review_scope
from signoff.review.pure.constraint import Constraint
from signoff.review.pure.critique import (
    MOST_ISSUES,
    OMISSION,
    Adjudication,
    Critique,
    CritiqueIssue,
    Overall,
    Pursuit,
)
from signoff.review.pure.evidence import (
    EVIDENCE_RULE,
    CritiqueProblems,
    find_problems,
    mark_unverified,
)
from signoff.review.pure.finding import is_set_aside
from signoff.review.pure.identity import assign_lines, find_passages
from signoff.review.pure.parsing import (
    find_whole_issues,
    limit_issues,
    parse_critique,
    with_unique_ids,
)
from signoff.review.pure.policy import IssueContext, apply_issue_rules, is_excused
from signoff.review.pure.prompt_text import ConstraintMaterial, known_findings
from signoff.review.pure.prompts import build_critic_prompt, verifier_prompt
from signoff.review.pure.record import Record
from signoff.review.pure.reply_text import Material, ReplyFormat, Unreadable, clean, find_answer

CONSTRAINTS, CRITIQUES = "constraints", "critiques"
"""The keys of an item with several constraints, and of its result."""
PATHS = "paths"
"""The key of an item about files."""
CERTAIN = "certain"
"""The key of a result that tells whether it comes from a program or a human."""
PASS, FAIL, FINDINGS = "pass", "fail", "findings"
"""What a human can decide about a review that cannot be used as it is."""


@dataclass(frozen=True)
class ReviewQuestion:
    """What a critic is asked about one constraint."""

    constraint: Constraint
    analysis: str
    """The output of the constraint's script about the artifact."""
    prompt: ProductPrompt
    """The prompt that asks about nothing else."""
    request: str
    """Identifies the question, so that it is not asked twice."""


@dataclass(frozen=True)
class CriticCall:
    """One call of a critic, and what is known about its answers so far."""

    scope: review_scope.ReviewScope
    prompt: ProductPrompt
    unread: Critique
    """The critique that it has as long as no answer can be read."""
    valid: review_scope.OpenIssues


@dataclass(frozen=True)
class CriticHandler:
    """The handler of one item of a critique step: an agent, and a constraint or several."""

    flow: Flow
    step: WorkflowStep
    state: FlowState
    paths: tuple[str, ...] = ()
    """The files that an item is about; empty if the artifact is one text."""

    async def __call__(self, ctx: StepContext, item: Mapping[str, Any]) -> dict[str, Any]:
        """Returns a critique that can be relied on; for several constraints, all of theirs."""
        if PATHS in item and not self.paths:
            return await replace(self, paths=tuple(item[PATHS]))(ctx, item)
        if CONSTRAINTS in item:
            return {CRITIQUES: await self._review(ctx, item["agent"], item[CONSTRAINTS])}
        (critique,) = await self._review(ctx, item["agent"], [item["constraint"]])
        return critique

    async def _review(
        self, ctx: StepContext, agent: str, constraints: Sequence[str]
    ) -> list[dict[str, Any]]:
        """Returns the critiques of an agent, with the behavior of each finding.

        A critic that has answered the same question in this run is not asked again. Programs
        are: they cost nothing, and may look at more than the artifact.
        """
        exact = self.flow.capabilities(agent).deterministic
        results: dict[str, dict[str, Any]] = {}
        unanswered: dict[str, ReviewQuestion] = {}
        for name in constraints:
            question = await self._question(ctx, agent, self.flow.by_id[name])
            # The answer is found by what was asked and not by the wording of the prompt, so a run
            # that is resumed by a later release, with other templates, does not pay again.
            answered = self.state.answered.get(question.request) if not exact else None
            if answered is None:
                unanswered[name] = question
                continue
            ctx.progress(f"{name}: unchanged since {agent} reviewed it")
            reused = {"round": ctx.iteration, "request": question.request, "reused": True}
            results[name] = {**answered, **reused}
        if unanswered:
            critiques, certain = await self._ask(ctx, agent, list(unanswered.values()), exact=exact)
            for critique in critiques:
                question = unanswered[critique.constraint_id]
                checked = await self._checked(ctx, critique, question, certain=certain)
                results[critique.constraint_id] = {**checked, CERTAIN: certain}
        return [results[name] for name in constraints]

    async def _question(
        self, ctx: StepContext, agent: str, constraint: Constraint
    ) -> ReviewQuestion:
        output = await analysis(ctx, self.flow, constraint, self._text)
        # What was answered about a constraint is found again whether it was asked alone or not.
        # A check of the project gets its files apart from the prompt.
        paths = () if self.flow.capabilities(agent).whole_project else self.paths
        alone = review_prompt(self.flow, self.state, agent, [(constraint, output)], paths)
        request = digest([agent, self.step.model, alone.material])
        return ReviewQuestion(constraint, output, alone, request)

    async def _checked(
        self, ctx: StepContext, critique: Critique, question: ReviewQuestion, *, certain: bool
    ) -> dict[str, Any]:
        """Returns a critique with its behaviors, after severe findings were confirmed."""
        constraint, config = question.constraint, self.flow.config
        # The order matters. Lines come before decisions, which are about one of several equal
        # passages; and a finding that is dismissed or set aside must not cost a confirmation.
        critique = config.with_behaviors(critique, constraint)
        about = IssueContext(
            self.state.content, self.state.base, self.state.trusted, self.state.rule_decisions
        )
        excused = partial(is_excused, about=about)
        findings = self.state.ledger.findings.values()
        critique = assign_lines(critique, self.state.content, findings, excused)
        critique = apply_issue_rules(critique, about)
        verified: list[dict[str, Any]] = []
        if config.verify is not None and not certain:
            verifier = Verifier(self.flow, self.state, config.verify)
            critique, verified = await verifier.verify(ctx, critique)
        return {**critique.to_json(), "request": question.request, "verified": verified}

    async def _ask(
        self, ctx: StepContext, agent: str, questions: Sequence[ReviewQuestion], *, exact: bool
    ) -> tuple[list[Critique], bool]:
        """Returns the agent's critiques, or what a human made of its answer, and their certainty.

        What a human or a program found is certain: it needs no agent to confirm it.
        """
        scope = review_scope.ReviewScope(tuple(each.constraint for each in questions))
        prompt = self._prompt(agent, questions)
        unread = Critique(scope.first.id, agent, ctx.iteration, Overall.ERROR, paths=self.paths)
        call = CriticCall(scope, prompt, unread, review_scope.OpenIssues())
        checked = await ctx.ask(
            agent,
            prompt,
            key="+".join(each.id for each in scope.constraints),
            read=partial(self._read, call, quotes_artifact=not exact),
            salvage=None if exact else partial(self._salvage, call),
            otherwise=Otherwise(partial(self._unusable, call), key="unusable"),
            about=self._about(scope),
            model=self.step.model,
            timeout=self.step.timeout,
            **(self._check_options(scope, agent) if exact else {}),
        )
        # A human who has decided is not contradicted by an agent that confirms findings.
        certain = exact or checked.answer is not None
        block_on = self.flow.config.adjudication.block_on
        return scope.split(_decided(checked, call), block_on), certain

    @property
    def _text(self) -> str:
        """The text for a program: the artifact, or the files one after the other."""
        return "".join(self.state.files[path] for path in self.paths or ("",))

    def _about(self, scope: review_scope.ReviewScope) -> dict[str, Any]:
        title = f"Review against {scope.names}"
        name = "+".join(each.id for each in scope.constraints)
        if not self.paths:
            return {"title": title, "name": name}
        label = files_label(self.paths)
        title = f"{title}: {', '.join(self.paths)}"
        return {"title": title, "subject": label, "name": f"{name} {label}"}

    def _check_options(self, scope: review_scope.ReviewScope, agent: str) -> dict[str, Any]:
        """Returns what a check gets: the bare text, because its findings quote its own output."""
        if self.flow.capabilities(agent).whole_project:
            name = self.flow.config.output.filename
            files = self.state.files if self.paths else {name: self._text}
            return {"texts": dict(files), "artifact": "", "constraint": scope.first.id}
        path = {"path": self.paths[0]} if len(self.paths) == 1 else {}
        return {"artifact": self._text, "constraint": scope.first.id, **path}

    def _prompt(self, agent: str, questions: Sequence[ReviewQuestion]) -> ProductPrompt:
        if len(questions) == 1:
            return questions[0].prompt
        about = [(each.constraint, each.analysis) for each in questions]
        return review_prompt(self.flow, self.state, agent, about, self.paths)

    def _read(self, call: CriticCall, reply: Reply, *, quotes_artifact: bool) -> Critique:
        """Returns the critique in a reply; raises everything that is wrong with it."""
        config, scope = self.flow.config, call.scope
        block_on = config.adjudication.block_on
        most = config.max_findings * len(scope.constraints)
        # A check is a program: it quotes nothing, and all of its findings count.
        critique, unreadable = _parsed(
            reply,
            constraint_id=call.unread.constraint_id,
            reviewer=call.unread.reviewer,
            iteration=call.unread.round,
            rules=scope.severities,
            owner=scope.owner,
            material=self._material(call.prompt) if quotes_artifact else Material(),
            paths=self.paths,
        )
        # `auto` and a human at `manual` answer in the place of the agent that was asked.
        critique = replace(critique, answered_by=reply.by or reply.agent or "")
        if critique.answered_by == critique.reviewer:
            critique = replace(critique, answered_by="")
        outside = self._issues_outside(critique, call, reply) if quotes_artifact else []
        if outside:
            every = with_unique_ids([*critique.issues, *outside], scope.owner)
            critique = replace(critique, issues=tuple(every))
            unreadable.append(f"{len(outside)} of its issues are not in `issues`")
        critique, unknown_files = self._with_files(critique, strict=quotes_artifact)
        critique = call.valid.merged(critique, scope.owner, block_on)
        known = self._known(scope, critique)
        critique = limit_issues(
            critique,
            most if quotes_artifact else MOST_ISSUES,
            lambda issue: issue.severity in block_on or issue.id in known,
        )
        found = CritiqueProblems()
        problems = list(unreadable)
        if quotes_artifact:
            found = find_problems(critique, self.state.content.text, block_on)
            problems += [*scope.unknown_rules(critique), *unknown_files, *found.messages()]
        if not problems:
            return critique
        marked = mark_unverified(critique, found)
        problems += self._keep_valid(marked, call)
        # A wrong quote makes one finding doubtful. A verdict against its own findings, or a
        # severity that nobody knows, makes the whole answer doubtful, and only a human may use it
        # as it is.
        usable = not (unreadable or found.contradiction)
        raise AgentBadOutput("", *problems, value=marked, usable=usable)

    def _salvage(self, call: CriticCall, text: str) -> list[str]:
        """Keeps the valid issues of a reply that is no critique, such as one that was cut off.

        They get no benefit of doubt: their quotes and rules are checked like those of any answer.
        """
        issues = self._whole_issues(call, text)
        block_on = self.flow.config.adjudication.block_on
        critique, _ = self._with_files(replace(call.unread, issues=tuple(issues)), strict=True)
        critique = call.valid.merged(critique, call.scope.owner, block_on)
        found = find_problems(critique, self.state.content.text, block_on)
        return self._keep_valid(mark_unverified(critique, found), call)

    def _whole_issues(self, call: CriticCall, text: str) -> list[CritiqueIssue]:
        return find_whole_issues(
            text,
            rules=call.scope.severities,
            owner=call.scope.owner,
            material=self._material(call.prompt),
            by_file=bool(self.paths),
        )

    def _issues_outside(
        self, critique: Critique, call: CriticCall, reply: Reply
    ) -> list[CritiqueIssue]:
        """Returns the issues of a reply that are elsewhere than in the list of its critique.

        A critic may call the list `findings`, or write one more issue below a verdict of PASS.
        """
        listed = {(issue.finding, issue.evidence) for issue in critique.issues}
        every = self._whole_issues(call, reply.text)
        return [each for each in every if (each.finding, each.evidence) not in listed]

    def _keep_valid(self, critique: Critique, call: CriticCall) -> list[str]:
        """Keeps the issues of an answer that is sent back; returns what to tell the critic."""
        sound = (i for i in critique.issues if not i.unverified and call.scope.is_known(i))
        return call.valid.keep([each for each in sound if bool(each.path) is bool(self.paths)])

    def _with_files(self, critique: Critique, *, strict: bool) -> tuple[Critique, list[str]]:
        """Returns a critique whose issues are about files of this review, and what was wrong."""
        if not self.paths:
            return critique, []
        if strict:
            shown = review_scope.show_files(self.state.files, self.state.base, self.paths)
            return review_scope.assign_files(critique, shown, self.state.content)
        # A program may look at more than the files of a review; then its finding is about none.
        only = self.paths[0] if len(self.paths) == 1 else ""
        paths = [issue.path if issue.path in self.paths else only for issue in critique.issues]
        issues = (
            issue if issue.path == path else replace(issue, path=path)
            for issue, path in zip(critique.issues, paths, strict=True)
        )
        return replace(critique, issues=tuple(issues)), []

    def _material(self, prompt: ProductPrompt) -> Material:
        """Returns what a critic was given; the part that all critics share is read once."""
        return Material(prompt[: prompt.shared], prompt[prompt.shared :], self.flow.goal.text)

    def _known(self, scope: review_scope.ReviewScope, critique: Critique) -> set[str]:
        """Returns the issues of a critique that are open findings: to cut one would hide it."""
        findings = self.state.ledger.findings
        if not findings:
            return set()
        parts = scope.split(critique)
        named = find_passages(findings.values(), parts, self.state.content)
        return {
            issue.id
            for part, identities in zip(parts, named, strict=True)
            for issue, each in zip(part.issues, identities, strict=True)
            if each.id in findings and findings[each.id].status is FindingStatus.OPEN
        }

    def _unusable(self, call: CriticCall, last: CheckedReply[Critique]) -> Request:
        scope, agent, base = call.scope, call.unread.reviewer, _answered(last, call)
        options = [Option(RETRY), Option(PASS), Option(FAIL, requires_input=True)]
        prompt = (
            f"Nobody has reviewed {scope.names}: {agent}'s answer cannot be used, and sending it "
            f"back did not help: {'; '.join(last.problems).rstrip('.')}.\n"
            f"Read the text, then decide. {RETRY}: ask {agent} again. {PASS}: the text complies. "
            f"{FAIL}: record what you write as a finding."
        )
        if base.issues:
            options.insert(1, Option(FINDINGS))
            prompt += f" {FINDINGS}: count its findings, whatever its verdict."
        # The text as the critic got it: nobody judges what they cannot see.
        names = [each.id for each in scope.constraints]
        shown = judging_material(self.flow, self.state, names, self.paths)
        if last.value or base.issues:
            shown["critique"] = base.to_json()
        several = scope.several or len(self.flow.reviewers(self.step, scope.first)) > 1
        name = f"critique_{scope.first.id}_{agent}" if several else f"critique_{scope.first.id}"
        name += f"_{files_label(self.paths)}" if self.paths else ""
        return Choice(ProductPrompt(prompt), options, question_id=name, shown=shown)


def review_prompt(
    flow: Flow,
    state: FlowState,
    agent: str,
    about: Sequence[tuple[Constraint, str]],
    paths: Sequence[str] = (),
) -> ProductPrompt:
    """Returns the prompt for a critic of constraints, each with the output of its script."""
    first, *also = (
        ConstraintMaterial(constraint, state.source(constraint.id), analysis)
        for constraint, analysis in about
    )
    # Files are named instead of the artifact: a critic must see each text once, or it reports every
    # finding twice.
    ledger, block_on = state.ledger, flow.config.adjudication.block_on
    return build_critic_prompt(
        goal=flow.goal.text,
        artifact="" if paths else state.artifact,
        files=review_scope.show_files(state.files, state.base, paths),
        intent=state.intent,
        constraint=first.constraint,
        sources=first.sources,
        analysis=first.analysis,
        also=also,
        guidance=state.guidance,
        known=[
            line
            for each, _ in about
            for line in known_findings(ledger, each.id, block_on, qualified=bool(also), paths=paths)
        ],
        goal_sources=state.source(),
        structured=flow.capabilities(agent).json_schema,
        max_findings=flow.config.max_findings,
        block_on=flow.config.adjudication.block_on,
        templates=flow.prompts,
    )


def _parsed(reply: Reply, **about: Any) -> tuple[Critique, list[str]]:
    """Returns the critique in a reply, and what is wrong with parts of it that can be read."""
    try:
        return parse_critique(reply, **about), []
    except AgentBadOutput as error:
        if not isinstance(error.value, Critique):
            raise
        return error.value, list(error.problems)


def _answered(checked: CheckedReply[Critique], call: CriticCall) -> Critique:
    """Returns the last critique, or the valid issues before it if it could not be read."""
    critique = checked.value or replace(call.unread, issues=call.valid.issues)
    return _noted(critique, checked)


def _noted(critique: Critique, checked: CheckedReply[Critique]) -> Critique:
    """Returns a critique with a note on why the previous one was sent back."""
    if not checked.sent_back:
        return critique
    # What follows the rule about withdrawals is not wrong with the answer.
    wrong = takewhile(lambda each: each != review_scope.WITHDRAWAL_RULE, checked.sent_back)
    problems = "; ".join(each for each in wrong if each != EVIDENCE_RULE)
    return replace(critique, notes=(f"sent back: {shortened(problems)}", *critique.notes))


def _decided(checked: CheckedReply[Critique], call: CriticCall) -> Critique:
    """Returns the critique that counts: the critic's, or what a human made of it."""
    scope, base, answer = call.scope, _answered(checked, call), checked.answer
    if answer is None:
        return base
    human = answer.by or "a human"
    about = f" for {scope.names}" if scope.several else ""
    notes = (*base.notes, f"{human} decided{about}: {answer.value}")
    base = replace(base, decided_by=human)
    if answer.value == FINDINGS:
        return replace(base, overall=Overall.FAIL, notes=notes)
    if answer.value == PASS:
        return replace(base, overall=Overall.PASS, issues=(), notes=notes)
    # What a human writes has no quote to check, so it is recorded as something missing: it then
    # stays open until the text changes.
    finding = CritiqueIssue(
        id=f"{base.constraint_id}-001",
        rule_id=next(iter(scope.rules), scope.first.id),
        finding=answer.text,
        evidence=OMISSION,
        confidence=1.0,
    )
    issues = with_unique_ids([*call.valid.issues, finding], scope.owner)
    return replace(base, overall=Overall.FAIL, issues=tuple(issues), notes=notes)


CONTEXT_LINES = 8
"""Lines that are shown before and after the quoted passage."""


@dataclass(frozen=True)
class Verifier:
    """Asks the confirming agent of a flow about the severe issues of one critique."""

    flow: Flow
    state: FlowState
    config: VerifyConfig

    async def verify(
        self, ctx: StepContext, critique: Critique
    ) -> tuple[Critique, list[dict[str, Any]]]:
        """Returns a critique with unconfirmed issues set aside, and the new answers to keep."""
        issues, notes, answers = [], list(critique.notes), []
        for issue in critique.issues:
            if issue.severity.rank > self.config.min_severity.rank or is_set_aside(issue):
                issues.append(issue)
                continue
            confirmation, new = await self.confirm(ctx, critique, issue)
            answers += new
            if confirmation.confirmed:
                issues.append(issue)
                continue
            why = f"not confirmed by {self.config.agent}: {confirmation.reason}"
            notes.append(f"{issue.id} was {why}")
            issues.append(replace(issue, set_aside=why))
        return replace(critique, issues=tuple(issues), notes=tuple(notes)), answers

    async def confirm(
        self, ctx: StepContext, critique: Critique, issue: CritiqueIssue
    ) -> tuple[Confirmation, list[dict[str, Any]]]:
        """Returns whether an issue is true, and the answer to keep if it is a new one."""
        prompt = self.prompt(issue, self.flow.by_id[critique.constraint_id])
        # An answer holds for this claim about this passage only: another claim about the same
        # words may be true, and other words around them may make the same claim true.
        request = digest(["verify", self.config.agent, prompt.material])
        answered = self.state.answered.get(request)
        if answered is not None:
            return Confirmation.from_json(answered), []
        about = {
            "title": f"Confirm {issue.id} of {critique.reviewer}",
            "subject": f"{issue.id}-{critique.reviewer}",
        }
        confirmation = await self._ask(ctx, prompt, about)
        return confirmation, [{"request": request, "answer": confirmation.to_json()}]

    def prompt(self, issue: CritiqueIssue, constraint: Constraint) -> ProductPrompt:
        """Returns the question about an issue."""
        # A rule about facts usually means the sources of the goal.
        sources = dict.fromkeys([self.state.source(constraint.id), self.state.source()])
        return verifier_prompt(
            goal=self.flow.goal.text,
            passage=self._passage(issue),
            constraint=constraint,
            issue=issue,
            sources="\n\n".join(filter(None, sources)),
            structured=self.flow.capabilities(self.config.agent).json_schema,
            templates=self.flow.prompts,
        )

    async def _ask(
        self, ctx: StepContext, prompt: ProductPrompt, about: dict[str, Any]
    ) -> Confirmation:
        read = partial(parse_confirmation, material=Material(prompt))
        try:
            checked = await ctx.ask(self.config.agent, prompt, key=VERIFY, read=read, about=about)
        except AgentBadOutput as error:
            return Confirmation(confirmed=True, reason=f"the answer cannot be read: {error}")
        # An agent that says nothing usable has not refuted the claim.
        return checked.value or Confirmation(confirmed=True)

    def _passage(self, issue: CritiqueIssue) -> str:
        """Returns the lines around the quote; the whole artifact if something is missing."""
        text = self.state.files.get(issue.path, "")
        quoted = self.state.content.text(issue.path)
        found = quoted.lines_of(issue.evidence) if not issue.omission else []
        if not found:
            return text
        lines = text.split("\n")
        first, last = found[0][0], found[-1][1]
        return "\n".join(lines[max(0, first - CONTEXT_LINES) : last + 1 + CONTEXT_LINES])


async def second_look(
    verifier: Verifier, ctx: StepContext, judged: Adjudication, critiques: Sequence[Critique]
) -> tuple[Adjudication, list[dict[str, Any]]]:
    """Returns a verdict in which a dismissed CRITICAL issue is pursued if it is confirmed.

    A wrong dismissal of such an issue is the most expensive mistake of a judge: no critic reports
    it again. One that was pursued before and is still there stays pursued. What a human has decided
    is not questioned. Also returns the answers to keep.
    """
    reports = {i.finding_id: (c, i) for c in critiques for i in c.issues if i.finding_id}
    findings = verifier.state.ledger.findings
    to_fix_before = {each for round_ in verifier.state.to_fix for each in round_}
    decisions, notes, answers = list(judged.decisions), list(judged.notes), []
    for number, decision in enumerate(decisions):
        finding, report = findings.get(decision.finding_id), reports.get(decision.finding_id)
        if decision.status is not Pursuit.DISMISSED or decision.severity is not WORST:
            continue
        # A human's decision is final here, and without the critic's report there is no claim to
        # confirm.
        if finding is None or finding.decision or report is None:
            continue
        reported_again = finding.label is Label.STILL_OPEN and not finding.not_reported_again
        # The judge has asked for this fix before and its critic still reports it. Paying for
        # another opinion would only tell what two have said already.
        if finding.id in to_fix_before and reported_again:
            why = "it had to be fixed before and is still open"
        else:
            confirmation, new = await verifier.confirm(ctx, *report)
            answers += new
            if not confirmation.confirmed:
                continue
            why = f"it is confirmed by {verifier.config.agent}: {confirmation.reason}"
        decisions[number] = replace(decision, status=Pursuit.PURSUING, rationale=None)
        notes.append(f"{decision.issue_id}: dismissed by the judge, but {why}; it has to be fixed")
    return replace(judged, decisions=tuple(decisions), notes=tuple(notes)), answers


LONGEST_REASON = 1_000

_FORMAT = ReplyFormat("confirmed", "confirmed", entry="", texts={"": ("reason",)})


@dataclass(frozen=True)
class Confirmation(Record):
    """Whether a finding is true, and why."""

    confirmed: bool
    reason: str = ""


def parse_confirmation(reply: Reply, material: Material) -> Confirmation:
    """Returns the confirmation in a reply; raises `Unreadable` with a message to its author."""
    answer: Mapping[Any, Any] = (
        reply.value
        if isinstance(reply.value, Mapping)
        else find_answer(reply.text, material, _FORMAT)
    )
    confirmed = answer.get("confirmed")
    if not isinstance(confirmed, bool):
        raise Unreadable("`confirmed` must be true or false")
    return Confirmation(confirmed, clean(str(answer.get("reason") or ""))[:LONGEST_REASON])
