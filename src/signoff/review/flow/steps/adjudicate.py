"""Judges the findings of the critics: by an agent, by a human, or by the rules alone.

The judge's verdict is checked. An approval is valid only if no blocking finding is still
pursued, and a finding that the judge does not mention is pursued. A human judge decides about each
finding and never fills in a format. An approval that would end the run has everything read first
that was not read in its current form, because nothing after it would make up for that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

from signoff.core.amounts import count
from signoff.core.checked import CheckedReply, Otherwise
from signoff.core.context import StepContext
from signoff.core.delta import Append
from signoff.core.digest import digest
from signoff.core.effects import ProductPrompt, Reply
from signoff.core.outcome import Outcome
from signoff.core.questions import Option, UserQuestion
from signoff.core.requests import RETRY, SIGN_OFF, Answer, Choice, Questions, Request
from signoff.core.stop_reason import NotConverging
from signoff.review.flow.model import (
    POLICY_JUDGE,
    AdjudicationConfig,
    Flow,
    StepKind,
    Trigger,
    VerifyConfig,
)
from signoff.review.flow.state import (
    NOT_CONVERGING,
    UNREVIEWED,
    FlowState,
    after,
    finding_details,
    finding_line,
    finding_lines,
    format_issues,
    get_critiques_for_scope,
    joined,
    keep_answer,
    left_unadjudicated,
    report_warnings,
    with_best,
    with_round,
)
from signoff.review.flow.steps import sign_off
from signoff.review.flow.steps.authors import bill_of, dismissed_names
from signoff.review.flow.steps.critic import Verifier, second_look
from signoff.review.flow.steps.critique import CriticPanel, undecided
from signoff.review.flow.steps.handler import REASON, FlowHandler, StepResult
from signoff.review.pure import policy
from signoff.review.pure.critique import (
    Adjudication,
    AdjudicationDecision,
    Critique,
    Pursuit,
    Verdict,
)
from signoff.review.pure.finding import blocking_first
from signoff.review.pure.findings import Finding, Ledger, with_not_reported
from signoff.review.pure.parsing import parse_adjudication
from signoff.review.pure.prompt_text import earlier_findings, held_back_by
from signoff.review.pure.prompts import build_adjudicator_prompt
from signoff.review.pure.reply_text import Material
from signoff.review.pure.review_scope import ShownFile, show_files
from signoff.review.pure.work_order import without_issues

RULES = "rules"
NOTHING_TO_DECIDE = "passed by the rules: no critic reported an issue that has to be decided"
"""The note on a verdict for which no judge was asked; it is no reason for a warning."""
CONTINUE, STOP = "continue", "stop"


@dataclass(frozen=True)
class AdjudicateHandler(FlowHandler):
    """The handler of an adjudicate step."""

    async def perform(self, ctx: StepContext) -> StepResult:
        """Decides on the critiques in scope, and whether there is anything left to do."""
        judged, update = await self._decide(ctx)
        state = FlowState(after(ctx.step_state, update))
        warnings: list[str] = []
        if self._ends_run(judged):
            block_on = self.flow.config.adjudication.block_on
            judged = policy.check_approval(judged, _decided(state, judged), block_on)
            if UNREVIEWED in judged.notes:
                # Files that no constraint is about can pass without that setting.
                allows = self.flow.config.allow_unreviewed
                allowed = ": the flow sets allow_unreviewed" if allows else ""
                warnings = [f"passed without a review{allowed}"]
        # From here on nothing changes the verdict, so the work order is completed from what really
        # has to be fixed.
        judged = self._with_bill(judged, state)
        pursued = sorted({d.finding_id for d in judged.pursued() if d.finding_id})
        ledger = _decided(state, judged)
        notes = [note for note in judged.notes if note != NOTHING_TO_DECIDE]
        update = joined(
            update,
            {
                "last_adjudication": judged.to_json(),
                "unadjudicated_critiques": left_unadjudicated(ctx.step_state, self.step.scope),
                "to_fix": Append([{"round": ctx.iteration, "findings": pursued}]),
                "findings": ledger.to_json(),
                "rounds": with_round(state, ledger, ctx.iteration),
                **self.record(agent=judged.by),
                **report_warnings(ctx, [*notes, *warnings]),
            },
        )
        # A version is ranked after the verdict, so dismissed findings do not count against it.
        update |= with_best(ctx, after(ctx.step_state, update))
        if judged.status is Verdict.APPROVED:
            saved = await self._approve(ctx, after(ctx.step_state, update), warnings)
            return Outcome.OK, update | saved
        return await self._continue(ctx, judged, update)

    async def _decide(self, ctx: StepContext) -> tuple[Adjudication, dict[str, Any]]:
        """Returns the verdict on the critiques in scope, and on what had to be read before it."""
        critiques = policy.for_judge(get_critiques_for_scope(ctx.step_state, self.step.scope))
        update: dict[str, Any] = {}
        to_decide = with_not_reported(critiques, FlowState(ctx.step_state).ledger)
        if self.flow.finishes(self.step) and not self._blocked(to_decide):
            # An approval is likely: reading the rest first saves a second verdict.
            found, update = await read_rest(ctx, self.flow, ctx.step_state)
            critiques += found
        state = FlowState(after(ctx.step_state, update))
        critiques = with_not_reported(critiques, state.ledger)
        judged, answer = await self._judge(ctx, state, critiques)
        update = joined(update, answer)
        if not critiques:
            reviewed = any((*state.critiques_by_step.values(), *state.not_repeated.values()))
            judged = _noted(judged, "no critique was left to judge" if reviewed else UNREVIEWED)
        if not self._ends_run(judged):
            return judged, update
        # Nothing after an approval that ends the run could find what was not read, so what is left
        # is read now, and what it finds is judged like everything else.
        raw = after(ctx.step_state, update)
        found, rest = await read_rest(ctx, self.flow, raw)
        update = joined(update, rest)
        if not any(critique.issues for critique in found):
            return judged, update
        more, answer = await self._judge(ctx, FlowState(after(raw, rest)), found)
        both = replace(
            more,
            decisions=(*judged.decisions, *more.decisions),
            notes=(*judged.notes, *more.notes),
            by=more.by if more.by != POLICY_JUDGE else judged.by,
        )
        return both, joined(update, answer)

    def _ends_run(self, judged: Adjudication) -> bool:
        return judged.status is Verdict.APPROVED and self.flow.finishes(self.step)

    def _blocked(self, critiques: Sequence[Critique]) -> bool:
        block_on = self.flow.config.adjudication.block_on
        return any(issue.severity in block_on for each in critiques for issue in each.issues)

    def _with_bill(self, judged: Adjudication, state: FlowState) -> Adjudication:
        """Returns a verdict with a work order built from it, if the judge wrote none."""
        written = judged.bill_of_work.strip() or not judged.pursued()
        if judged.status is not Verdict.REWRITE or written:
            return judged
        now = FlowState({**state.raw, "last_adjudication": judged.to_json()})
        composed = replace(judged, bill_of_work=bill_of(now))
        asked = self.flow.capabilities(self.agent)
        if judged.by == POLICY_JUDGE or asked.answered_by_human:
            return composed  # Neither the rules nor a human are expected to write one.
        note = "the judge wrote no work order; one was built from the findings to fix"
        return _noted(composed, note)

    async def _approve(
        self, ctx: StepContext, state: dict[str, Any], warnings: Sequence[str]
    ) -> dict[str, Any]:
        """Saves the artifact if the run ends with this approval; returns the update."""
        if self.flow.finishes(self.step):
            if self.flow.is_signed_off(self.step):
                return sign_off.note_warnings(warnings)
            return await sign_off.save_result(ctx, self.flow, state, warnings)
        if not (
            self.flow.starts_round_on_approval(self.step) and sign_off.at_limit(ctx, self.flow)
        ):
            return {}
        why = f"{count(ctx.iteration, 'round')}; a pass by {self.step.id!r} does not end the run"
        return {REASON: why}

    async def _judge(
        self, ctx: StepContext, state: FlowState, critiques: Sequence[Critique]
    ) -> tuple[Adjudication, dict[str, Any]]:
        """Returns the verdict on some critiques, and the update that keeps the judge's answer."""
        block_on = self.flow.config.adjudication.block_on
        by_rules = partial(
            policy.policy_judge, critiques, iteration=ctx.iteration, block_on=block_on
        )
        if self.agent == POLICY_JUDGE:
            return replace(by_rules(), by=POLICY_JUDGE), {}
        if self.flow.capabilities(self.agent).answered_by_human:
            verdict = await ask_human(ctx, self.flow, state, critiques)
            return replace(verdict, by=verdict.by or self.agent), {}
        if self._has_nothing_to_decide(critiques):
            ctx.progress(f"{self.agent} is not asked: there is nothing to decide")
            return _noted(replace(by_rules(), by=POLICY_JUDGE), NOTHING_TO_DECIDE), {}
        prompt = self._prompt(state, critiques, ctx.iteration)
        # The same judge with the same material would only be paid to say the same again. The model
        # is part of the request: another one may decide otherwise.
        request = digest([self.agent, self.step.model, prompt.material])
        answers: list[dict[str, Any]] = []
        if known := state.answered.get(request):
            ctx.progress(f"unchanged since {self.agent} judged it")
            verdict = replace(Adjudication.from_json(known), round=ctx.iteration)
        else:
            asked = await self._ask(ctx, prompt, state, critiques)
            if asked is None:
                note = f"{self.agent}'s answers could not be read; the rules decided"
                return _noted(replace(by_rules(), by=POLICY_JUDGE), note), {}
            verdict = asked
            answers.append({"request": request, "answer": verdict.to_json()})
        verdict = policy.check_verdict(
            replace(verdict, by=verdict.by or self.agent), critiques, block_on
        )
        # Without an agent that confirms findings, the judge itself is asked again.
        confirming = self.flow.config.verify or VerifyConfig(agent=self.agent)
        verifier = Verifier(self.flow, state, confirming)
        looked, more = await second_look(verifier, ctx, verdict, critiques)
        answers += more
        # A dismissal that was taken back may turn an approval into a rewrite, so the verdict has to
        # be checked against the findings once more.
        verdict = (
            policy.check_verdict(looked, critiques, block_on) if looked != verdict else verdict
        )
        return verdict, {"answered": Append(answers)} if answers else {}

    def _prompt(
        self, state: FlowState, critiques: Sequence[Critique], iteration: int
    ) -> ProductPrompt:
        flow, config = self.flow, self.flow.config.adjudication
        return build_adjudicator_prompt(
            goal=flow.goal.text,
            artifact="" if state.has_files else state.artifact,
            files=_disputed_files(state, critiques),
            constraints=flow.constraints,
            critiques=critiques,
            block_on=config.block_on,
            tensions=[(t.axis, t.guidance, t.winner_on_conflict) for t in config.tensions],
            instructions=config.instructions,
            guidance=state.guidance,
            known=earlier_findings(state.ledger, iteration, config.block_on),
            held_back_by=held_back_by(state.adjudication, iteration, config.block_on),
            disputed_sources=state.sources,
            structured=flow.capabilities(self.agent).json_schema,
            templates=flow.prompts,
        )

    async def _ask(
        self,
        ctx: StepContext,
        prompt: ProductPrompt,
        state: FlowState,
        critiques: Sequence[Critique],
    ) -> Adjudication | None:
        """Returns the judge's answer; None if it cannot be read and a human chose the rules."""
        material = Material(prompt, self.flow.goal.text)

        def read_verdict(reply: Reply) -> Adjudication:
            verdict = parse_adjudication(reply, iteration=ctx.iteration, material=material)
            # `auto` and a human at `manual` answer in the place of the agent that was asked.
            return replace(verdict, by=reply.by or reply.agent or self.agent)

        judged = await ctx.ask(
            self.agent,
            prompt,
            key="verdict",
            read=read_verdict,
            otherwise=Otherwise(partial(self._unreadable, state, critiques), key="unreadable"),
            **self.call_options,
        )
        return judged.value

    def _has_nothing_to_decide(self, critiques: Sequence[Critique]) -> bool:
        """Whether a model could only approve: there are critiques, but no issue in them.

        A human may judge more than the issues, and so may a judge with instructions.
        """
        agent = self.flow.capabilities(self.agent)
        if self.flow.config.adjudication.instructions.strip() or not agent.is_model:
            return False
        return bool(critiques) and not any(critique.issues for critique in critiques)

    def _unreadable(
        self, state: FlowState, critiques: Sequence[Critique], last: CheckedReply[Adjudication]
    ) -> Request:
        prompt = (
            f"The judge {self.agent!r} gave two answers that cannot be read: "
            f"{'; '.join(last.problems).rstrip('.')}.\n"
            f"{RETRY}: ask it again. {RULES}: let the rules decide. Then every finding is to be "
            "fixed, and the artifact passes unless one of them blocks."
        )
        ids = dict.fromkeys(i.finding_id for each in critiques for i in each.issues)
        known = state.ledger.findings
        listed = finding_lines(state.content, [known[each] for each in ids if each in known])
        shown = {"findings": listed, **sign_off.findings_material(self.flow, state, ids)}
        return Choice(
            ProductPrompt(prompt), [RETRY, RULES], question_id="adjudication", shown=shown
        )

    async def _continue(
        self, ctx: StepContext, judged: Adjudication, update: dict[str, Any]
    ) -> StepResult:
        """Continues with the next round, unless a rule or a human ends the run here."""
        state = FlowState(after(ctx.step_state, update))
        update = joined(update, await self._escalate(ctx, judged, state))
        unchanged = _judged_versions(state).get(self.step.id) == state.version
        progress = policy.LoopProgress(state.rounds, state.ledger, state.to_fix, unchanged)
        stop = policy.find_stop_reason(progress, self.flow.config.convergence.numbers)
        update["judged_versions"] = {**_judged_versions(state), self.step.id: state.version}
        if stop is not None:
            why = f"not converging ({stop.rule}): {stop.evidence}"
            if await self._ends_here(ctx, why, state, update):
                return Outcome.FAIL, {**update, REASON: NotConverging(stop.rule, stop.evidence)}
        return Outcome.ITERATE, update

    async def _escalate(
        self, ctx: StepContext, judged: Adjudication, state: FlowState
    ) -> dict[str, Any]:
        """Asks a human about the first dispute that the flow escalates; returns the update."""
        config = self.flow.config.adjudication
        for trigger, find in DISPUTES.items():
            dispute = find(config, judged, state) if trigger in config.triggers else None
            if dispute is not None:
                asked = (dispute.question_id, dispute.question, dispute.findings)
                update = await sign_off.ask_about_findings(ctx, self.flow, state, *asked)
                # The count starts again, or every later round would ask the same question.
                return {**update, "to_fix": []} if trigger == "thrashing" else update
        return {}

    async def _ends_here(
        self, ctx: StepContext, why: str, state: FlowState, update: dict[str, Any]
    ) -> bool:
        asks = NOT_CONVERGING in self.flow.config.adjudication.triggers
        if self.flow.config.convergence.action == "stop" and not asks:
            return True
        findings = state.ledger.open(self.flow.config.adjudication.block_on)
        prompt = f"The loop is {why}\nContinue anyway?\n{_format_findings(state, findings)}"
        request = Choice(
            ProductPrompt(prompt),
            [
                Option(CONTINUE, description="do another round anyway"),
                Option(STOP, description="end the run now; the best version is kept"),
            ],
            question_id=NOT_CONVERGING,
            shown=sign_off.findings_material(self.flow, state, [each.id for each in findings]),
        )
        answer = await ctx.wait(request, key=NOT_CONVERGING)
        if answer.value == CONTINUE:
            update |= joined(update, keep_answer(ctx, NOT_CONVERGING, why, answer))
            update["to_fix"] = []
        return bool(answer.value == STOP)


class Dispute(NamedTuple):
    """Findings that a human is asked about, because another round would not settle them."""

    question_id: str
    question: str
    findings: list[str]


def _thrashing(
    config: AdjudicationConfig, _judged: Adjudication, state: FlowState
) -> Dispute | None:
    findings = state.ledger.findings
    in_a_row = policy.to_fix_in_a_row(state.to_fix, config.thrash_threshold)
    # A human who has decided about a finding is not asked about it again, however often it returns.
    again = [findings[i] for i in in_a_row if i in findings and not findings[i].decision]
    stuck = sorted(again, key=blocking_first(config.block_on))
    question = (
        "The same findings come back round after round. How should they be dealt with? "
        f"Your answer goes to the judge and the author.\n{_format_findings(state, stuck)}"
    )
    return Dispute("thrashing", question, [each.id for each in stuck]) if stuck else None


def _conflicting_criticals(
    _config: AdjudicationConfig, judged: Adjudication, state: FlowState
) -> Dispute | None:
    findings, conflicts = state.ledger.findings, policy.conflicting_criticals(judged)
    if all(d.finding_id in findings and findings[d.finding_id].decision for d in conflicts):
        return None
    lines = ["Critical findings contradict each other. Which should win?"]
    for decision in conflicts:
        sides = filter(None, (decision.constraint, decision.competing_constraint))
        lines.append(f"- {decision.issue_id} ({' against '.join(sides)})")
        if known := findings.get(decision.finding_id):
            lines += [f"  {finding_line(state.content, known)}", *finding_details([known])[:1]]
    return Dispute("conflict", "\n".join(lines), [d.finding_id for d in conflicts])


DISPUTES: Mapping[Trigger, Callable[..., Dispute | None]] = {
    "thrashing": _thrashing,
    "conflicting_criticals": _conflicting_criticals,
}
"""What makes a human decide after a verdict, by its name in `triggers:`; the first one counts."""


def _disputed_files(state: FlowState, critiques: Sequence[Critique]) -> list[ShownFile]:
    """Returns the files that a judge needs: those with issues."""
    paths = {issue.path for critique in critiques for issue in critique.issues if issue.path}
    return show_files(state.files, state.base, sorted(paths & set(state.files)))


def _format_findings(state: FlowState, findings: Sequence[Finding]) -> str:
    """Returns findings for a human, who cannot decide by their ids alone."""
    return "\n".join(f"- {each}" for each in finding_lines(state.content, findings))


def _decided(state: FlowState, judged: Adjudication) -> Ledger:
    """Returns the findings after a verdict; what a human requested and was changed is not open."""
    ledger = state.ledger.apply(judged)
    return ledger.address(SIGN_OFF, state.content, judged.round)


def _judged_versions(state: FlowState) -> dict[str, str]:
    """Returns the version in which each judge last asked for changes."""
    return dict(state.raw.get("judged_versions") or {})


def _noted(judged: Adjudication, note: str) -> Adjudication:
    return replace(judged, notes=(*judged.notes, note))


FIX, DISMISS = "fix", "dismiss"
APPROVE, CHANGES = "approve", "request changes"
KEY = "decisions"
MOST_QUESTIONS = 40
"""Findings that a human decides about one by one, what blocks first; the others are fixed."""


async def ask_human(
    ctx: StepContext,
    flow: Flow,
    state: FlowState,
    critiques: Sequence[Critique],
) -> Adjudication:
    """Returns the verdict of a human; what they do not decide about is pursued."""
    block_on, known = flow.config.adjudication.block_on, state.ledger.findings
    ids = dict.fromkeys(i.finding_id for each in critiques for i in each.issues)
    findings = sorted((known[each] for each in ids if each in known), key=blocking_first(block_on))
    shown = {
        **sign_off.sign_off_material(ctx, flow, state),
        "rules": sign_off.judging_material(flow, state, flow.by_id)["rules"],
    }
    if not findings:
        return await _ask_without_findings(ctx, state, shown)
    prompt = "Decide about each finding; what you write with it is the reason of your dismissals."
    if len(findings) > MOST_QUESTIONS:
        others = count(len(findings) - MOST_QUESTIONS, "more finding")
        prompt += f" {others} will have to be fixed."
    material = {"version": state.version, "findings": [each.id for each in findings]}
    request = Questions(
        ProductPrompt(prompt, material),
        [_question(state, each) for each in findings[:MOST_QUESTIONS]],
        question_id="judge",
        shown=shown,
    )
    answer = await ctx.wait(request, key=KEY)
    # What the human does not decide about has to be fixed: silence must not dismiss a finding.
    by_rules = policy.policy_judge(critiques, iteration=ctx.iteration, block_on=block_on)
    decisions = tuple(_with_answer(each, answer) for each in by_rules.decisions)
    verdict = replace(by_rules, decisions=decisions, by=answer.by)
    if not verdict.pursued(block_on):
        return replace(verdict, status=Verdict.APPROVED, bill_of_work="")
    bill = without_issues(verdict.bill_of_work, dismissed_names(verdict))
    return replace(verdict, status=Verdict.REWRITE, bill_of_work=bill)


def _question(state: FlowState, finding: Finding) -> UserQuestion:
    options = (
        Option(FIX, description="it is a problem"),
        Option(DISMISS, description="it is none, or not worth a change"),
    )
    text = "; ".join([finding_line(state.content, finding), *finding_details([finding])])
    return UserQuestion(finding.id, text, options)


async def _ask_without_findings(
    ctx: StepContext, state: FlowState, shown: Mapping[str, Any]
) -> Adjudication:
    request = Choice(
        ProductPrompt("No critic found anything to decide about.", {"version": state.version}),
        [Option(APPROVE), Option(CHANGES, requires_input=True, description="write what to change")],
        question_id="judge",
        shown=shown,
    )
    answer = await ctx.wait(request, key=KEY)
    status = Verdict.APPROVED if answer.value == APPROVE else Verdict.REWRITE
    bill = "" if answer.value == APPROVE else answer.text
    return Adjudication(ctx.iteration, status, bill_of_work=bill, by=answer.by)


def _with_answer(decision: AdjudicationDecision, answer: Answer) -> AdjudicationDecision:
    """Returns a decision of the rules, or the dismissal that a human chose instead."""
    chosen: Mapping[str, str] = answer.value if isinstance(answer.value, Mapping) else {}
    if chosen.get(decision.finding_id) != DISMISS:
        return decision
    reason = answer.text or f"dismissed by {answer.by or 'a human'}"
    return replace(decision, status=Pursuit.DISMISSED, rationale=reason, guidance=None)


async def read_rest(
    ctx: StepContext, flow: Flow, raw: Mapping[str, Any]
) -> tuple[list[Critique], dict[str, Any]]:
    """Has everything read that was not read in its current form; returns what was found.

    There are several ways to skip a reading: `rereview: changed`, a finding that halts a serial
    critique and is then dismissed, a fix that no critique step follows. An approval ends the run,
    so nothing after it would make up for them.
    """
    update: dict[str, Any] = {}
    found: list[Critique] = []
    for step in flow.of_kind(StepKind.CRITIQUE):
        reading = CriticPanel(flow, step, FlowState(after(raw, update)))
        if unread := reading.unread():
            results = await reading.read_all(ctx, unread, key=f"last reading of {step.id}")
            more, critiques = reading.update(ctx, results, more=True)
            update = joined(update, more)
            found += critiques
    answer = await _ask_human(ctx, flow, FlowState(after(raw, update)), found)
    return policy.for_judge(found), joined(update, answer)


async def _ask_human(
    ctx: StepContext, flow: Flow, state: FlowState, critiques: Sequence[Critique]
) -> dict[str, Any]:
    """Asks about findings that the judge must not decide alone; returns the update."""
    issues = undecided(critiques, state.ledger)
    if not issues:
        return {}
    question = f"The last reading has findings that you must decide on:\n{format_issues(issues)}"
    ids = [issue.finding_id for issue in issues]
    return await sign_off.ask_about_findings(ctx, flow, state, "escalate", question, ids)
