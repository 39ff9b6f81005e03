"""Writes and fixes the artifact: generate and refine steps, and the work order they carry out.

A generate step writes from the goal, later versions from the last verdict too. In a refine step,
`apply` makes literal edits exactly and asks an agent only for the rest; `edit` lets an agent change
a working copy; `rewrite` has the whole text written again. What changed is recorded hunk by hunk,
each tied to the finding it answers. The agent also gets what the work order is about: the findings
with their evidence and rules, and the passages that critics approved.

A set of files is fixed file by file. Each file with findings is fixed in a view of the state that
has this file as its only text, with the findings and the part of the work order that are about it.
So every mode of a refine step works for files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any

from signoff.core.checked import CheckedReply, Otherwise
from signoff.core.context import StepContext
from signoff.core.delta import Append
from signoff.core.digest import SHORT, digest
from signoff.core.effects import ProductPrompt, Reply
from signoff.core.errors import AgentBadOutput
from signoff.core.one_line import cut, one_line
from signoff.core.outcome import Outcome
from signoff.core.requests import SIGN_OFF, Choice, Request, Response
from signoff.review.flow.end_view import stored_path
from signoff.review.flow.state import (
    NOTHING_REVIEWED,
    FlowState,
    keep_answer,
    report_warnings,
)
from signoff.review.flow.steps.critique import AT_ONCE
from signoff.review.flow.steps.handler import FlowHandler, StepResult
from signoff.review.flow.steps.material import gather
from signoff.review.pure import work_order
from signoff.review.pure.constraint import Constraint
from signoff.review.pure.critique import (
    Adjudication,
    AdjudicationDecision,
    CritiqueIssue,
    Pursuit,
    is_critique,
)
from signoff.review.pure.diff import (
    answered_by,
    tie_hunks,
    tie_requests,
    unified_diff,
    word_change_pct,
)
from signoff.review.pure.findings import Finding, Ledger, issue_of
from signoff.review.pure.lasting_decision import adds_ignore
from signoff.review.pure.prompt_text import edit_lines, flat
from signoff.review.pure.prompts import (
    brief_prompt,
    build_generator_prompt,
    build_refinement_prompt,
)
from signoff.runtime.environment import hidden_in

FILE = "artifact.md"
LONGEST_FIND = 80
"""Characters that a warning shows of the text that an edit looks for."""
BY_HAND, REGENERATE, ACCEPT = "edit by hand", "regenerate", "accept"


@dataclass(frozen=True)
class AuthorHandler(FlowHandler):
    """The handler of a step whose agent writes."""

    def author_prompt(
        self,
        state: FlowState,
        previous: str,
        bill_of_work: str,
        iteration: int,
        feedback: str | None = None,
    ) -> ProductPrompt:
        """Returns the prompt for an agent that writes the whole text, full or brief."""
        flow = self.flow
        if self.step.prompt == "brief":
            return brief_prompt(
                goal=flow.goal.text,
                sources=state.source(),
                bill_of_work=bill_of_work,
                guidance=state.guidance,
                feedback=feedback or "",
                templates=flow.prompts,
            )
        done = already_applied(state)
        return build_generator_prompt(
            goal=flow.goal.text,
            sources=state.source(),
            constraints=flow.constraints,
            previous=previous,
            bill_of_work=bill_of_work,
            guidance=state.guidance,
            feedback=feedback or "",
            iteration=iteration,
            already_applied=done,
            findings=() if done else findings_to_fix(state, flow.by_id, bill_of_work),
            approved=approved_sections(state),
            templates=flow.prompts,
        )


@dataclass(frozen=True)
class GenerateHandler(AuthorHandler):
    """The handler of a generate step."""

    async def perform(self, ctx: StepContext) -> StepResult:
        """Asks for the artifact and discards all reviews of an earlier one."""
        state = FlowState(ctx.step_state)
        sources = ctx.step_state.get("sources")
        update: dict[str, Any] = {}
        if sources is None:
            sources = await gather(ctx, self.flow)
        gathered = FlowState({**state.raw, "sources": sources})
        verdict = state.adjudication
        bill = verdict.bill_of_work if verdict else ""
        prompt = self.author_prompt(gathered, state.artifact, bill, ctx.iteration, ctx.feedback)
        reply = await ctx.ask(self.agent, prompt, key="draft", **self.call_options)
        update |= {
            # A new text has no reviews: findings of the old one stay in the ledger, but its
            # critiques must not reach a judge of this one.
            **NOTHING_REVIEWED,
            "artifact": checked_artifact(reply.text),
            "artifact_path": self.artifact_path("artifact", ctx.iteration),
            "sources": sources,
            **self.record(agent=self.agent),
            **(carried_out(state, changed=True) if state.adjudication else {}),
        }
        return Outcome.OK, update


@dataclass(frozen=True)
class RefineHandler(AuthorHandler):
    """The handler of a refine step."""

    filename: str = FILE
    """The name under which an agent gets the text to edit."""
    path: str = ""
    """The file that it is about, if the artifact is a set of files."""

    async def perform(self, ctx: StepContext) -> StepResult:
        """Returns the artifact with as much of the work order done as possible."""
        state = FlowState(ctx.step_state)
        if state.has_files:
            update = await self._refine_files(ctx, state)
        else:
            update = await self.refine(ctx, state)
        if self.step.loop_to is not None:
            update |= NOTHING_REVIEWED
        return Outcome.OK, update

    async def refine(self, ctx: StepContext, state: FlowState) -> dict[str, Any]:
        """Returns the update with one text fixed."""
        bill = bill_of(state)
        # Only edits for findings that the judge pursues: a critic's suggestion for a dismissed one
        # would change a passage that was found to be right.
        edits = wanted_edits(state, bill)
        applied = work_order.apply_edits(state.artifact, edits if self.step.mode == "apply" else [])
        if self.step.mode == "apply":
            # The engine has made the literal edits; the agent gets what they leave open.
            bill = bill_of(state, applied)
            if bill.strip() and self._writes_blind:
                # The agent writes a new text, so edits of the old one would be lost.
                applied = work_order.apply_edits(state.artifact, [])
        update: dict[str, Any] = {}
        text, problem = applied.text, ""
        if bill.strip():
            text, problem, update = await self._revise(ctx, state, applied.text, bill)
        if self.path and not update and adds_ignore(state.artifact, text):
            # The next review would take the fixer's own word for it that nothing is wrong.
            text, problem = state.artifact, "added a comment that ignores a rule; it is not used"
        # What changed is tied to findings by the engine and never by what the agent says it did.
        quotes = [(f.id, f.quote) for f in state.ledger.open()]
        hunks = tie_requests(tie_hunks(state.artifact, text, edits, quotes), requests_of(state))
        update |= {
            "artifact": text,
            "artifact_path": self.artifact_path("artifact_refined", ctx.iteration),
            **self._fixed(
                state,
                [
                    {
                        "agent": self.agent if bill.strip() else "",
                        "applied": [edit.to_json() for edit in applied.applied],
                        "unmatched": [[edit.to_json(), why] for edit, why in applied.unmatched],
                        "hunks": hunks,
                    }
                ],
                problem,
            ),
            **carried_out(state, changed=text.strip() != state.artifact.strip()),
        }
        if not problem and not bill.strip() and not applied.applied:
            problem = "changed nothing: the work order leaves nothing to do"
        warnings = [*_skipped(applied), *([f"the refinement {problem}"] if problem else [])]
        return update | report_warnings(ctx, warnings)

    async def _refine_files(self, ctx: StepContext, state: FlowState) -> dict[str, Any]:
        """Returns the update with every file fixed that has a pursued finding."""
        paths = _to_fix(state)

        async def fix(inner: StepContext, path: str) -> dict[str, Any]:
            name = PurePosixPath(stored_path(path)).name
            update = await replace(self, filename=name, path=path).refine(
                inner, file_state(state, path)
            )
            return {
                "text": update["artifact"],
                "record": update["step"],
                "human": list(update.get("human", ())),
                "remarks": [
                    {**each, "text": f"{path}: {each['text']}"} for each in _remarks(update)
                ],
            }

        # Files are independent: a fix of one must not wait for another, or fail with it.
        results = await ctx.map(paths, fix, key="fix", concurrency=AT_ONCE)
        files = {**state.files, **{p: r["text"] for p, r in zip(paths, results, strict=True)}}
        records = [{**r["record"], "path": p} for p, r in zip(paths, results, strict=True)]
        for each in records:
            each["hunks"] = [{**hunk, "path": each["path"]} for hunk in each["hunks"]]
        problem = "; ".join(f"{r['path']}: {r['problem']}" for r in records if r["problem"])
        update = {
            "files": files,
            **self._fixed(state, records, problem),
            **carried_out(state, changed=files != state.files),
        }
        for key in ("human", "remarks"):
            if entries := [each for result in results for each in result[key]]:
                update[key] = Append(entries)
        for warning in _remarks(update):
            # Views leave out what single items report, as there may be hundreds.
            ctx.progress(warning["text"])
        return update

    def _fixed(
        self, state: FlowState, fixes: Sequence[Mapping[str, Any]], problem: str
    ) -> dict[str, Any]:
        """Returns the update about what was fixed, in one text or in several."""
        hunks = [hunk for each in fixes for hunk in each["hunks"]]
        return {
            **self.record(
                agent=next((each["agent"] for each in fixes if each["agent"]), ""),
                mode=self.step.mode,
                applied=[edit for each in fixes for edit in each["applied"]],
                unmatched=[edit for each in fixes for edit in each["unmatched"]],
                hunks=hunks,
                unclaimed=sum(hunk["issue"] is None for hunk in hunks),
                problem=problem,
            ),
            "findings": state.ledger.mark_edited(answered_by(hunks)).to_json(),
        }

    async def _revise(
        self, ctx: StepContext, state: FlowState, text: str, bill: str
    ) -> tuple[str, str, dict[str, Any]]:
        """Returns the revised text, what is wrong with it, and the update with a human's answer."""
        working_copy: dict[str, Any] = {}
        if not self.writes_text:
            working_copy = {"files": {self.filename: text}, "edit": True}
        prompt = self._prompt(state, text, bill, ctx.iteration, ctx.feedback)
        # Not `== "escalate"`: recorded flows have other values, from before steps were checked.
        escalates = self.step.on_invalid != "continue"
        # A file is edited in a working copy, which exists only for this call. The text of the run
        # changes when the answer is recorded, so a crash leaves either the old or the new text.
        checked = await ctx.ask(
            self.agent,
            prompt,
            key="refine",
            read=partial(self._read, ctx, text),
            retries=self.step.validation_retries,
            otherwise=Otherwise(partial(self._invalid, text, bill), key="invalid")
            if escalates
            else None,
            show_previous=not self._writes_blind,
            about=self._about,
            **self.call_options,
            **working_copy,
        )
        problem, revised = "; ".join(checked.problems), checked.value or text
        if checked.answer is None:
            return revised, problem, {}
        update = keep_answer(ctx, "validation_failed", f"The refinement {problem}.", checked.answer)
        if checked.answer.value == ACCEPT:
            return revised, problem, update
        if checked.answer.value == REGENERATE:
            prompt = self.author_prompt(state, text, bill, ctx.iteration, problem)
            options = {"about": self._about, **self.call_options}
            reply = await ctx.ask(self.agent, prompt, key="refine", **options)
            return checked_artifact(reply.text, text), "", update
        form = f"Write the whole revised text. The work order:\n\n{bill}\n\n{text}"
        by_hand = await ctx.wait(Response(ProductPrompt(form)), key="by hand")
        return checked_artifact(str(by_hand.value), text), "", update

    @property
    def _about(self) -> dict[str, Any]:
        """Returns how logs and requests name a call that fixes one of several files."""
        path = self.path
        return {"title": f"Fix {path}", "subject": path, "name": path} if path else {}

    @property
    def _writes_blind(self) -> bool:
        """Whether the agent writes the whole text without seeing the current one."""
        return self.writes_text and self.step.prompt == "brief"

    @property
    def writes_text(self) -> bool:
        """Whether the agent writes the text again instead of editing a file."""
        return self.step.mode == "rewrite" or not self.flow.capabilities(self.agent).edits_files

    def _prompt(
        self, state: FlowState, text: str, bill: str, iteration: int, feedback: str | None = None
    ) -> ProductPrompt:
        """Returns the prompt for an agent that edits a file, or writes the text."""
        flow = self.flow
        if self.writes_text:
            return self.author_prompt(state, text, bill, iteration, feedback)
        return build_refinement_prompt(
            filename=self.filename,
            bill_of_work=bill,
            goal=flow.goal.text,
            guidance=state.guidance,
            feedback=feedback or "",
            constraints=flow.constraints,
            findings=findings_to_fix(state, flow.by_id, bill),
            approved=approved_sections(state),
            unchanged_before=state.unchanged,
            sources=state.source(),
            templates=flow.prompts,
        )

    def _read(self, ctx: StepContext, before: str, reply: Reply) -> str:
        """Returns the revised text; raises what is wrong with it."""
        elsewhere = [path for path in reply.files if path.startswith("..")]
        if elsewhere:
            ctx.progress(f"changed meanwhile, outside the copy: {', '.join(elsewhere)}")
        author = reply.agent or self.agent
        # It is allowed, because there may be one agent only. But whoever reads the log should know
        # that nobody else looked at the fix.
        own = [each.id for each in self.flow.constraints if author in (each.agents or ())]
        if own:
            ctx.log(f"{author} fixes what it reviewed itself: {', '.join(own)}")
        revised = self._revised_text(reply, before)
        problem = self._problem(before, revised)
        if problem:
            usable = self.step.on_invalid == "continue"
            raise AgentBadOutput(problem, value=revised, usable=usable)
        return revised

    def _revised_text(self, reply: Reply, before: str) -> str:
        """Returns the edited working copy, or the reply itself if a human answered instead."""
        if reply.contents is None:
            return checked_artifact(reply.text, before)
        left = reply.contents.get(self.filename, "")
        if not left.strip():
            return before
        # Only checked: an edited file keeps its own ending, or every edit would be a change there.
        checked_artifact(left, before)
        return left

    def _problem(self, before: str, after: str) -> str:
        if after.strip() == before.strip():
            return "changed nothing"
        if _lines(after) == _lines(before):
            return "changed nothing but spaces or line endings"
        most = self.step.max_size_change_pct
        # A rewrite is asked to write everything again, so the size of its change says nothing.
        if most is None or self.step.mode == "rewrite":
            return ""
        changed = word_change_pct(before, after)
        too_much = f"changed the size by {changed:.0f} %, more than {most:g} %"
        return too_much if changed > most else ""

    def _invalid(self, text: str, bill: str, last: CheckedReply[str]) -> Request:
        prompt = (
            f"The refinement {'; '.join(last.problems)}, and sending it back did not help.\n"
            f"{BY_HAND}: write the text yourself. {REGENERATE}: have it written again."
        )
        options = [BY_HAND, REGENERATE]
        shown = {"goal": cut(self.flow.goal.text), "work order": cut(bill)}
        if last.value is not None:
            prompt += f" {ACCEPT}: use it as it is."
            options.append(ACCEPT)
            changes = unified_diff({self.filename: text}, {self.filename: last.value})
            shown |= {"changes": changes, "revised": last.value}
        return Choice(ProductPrompt(prompt), options, question_id="validation_failed", shown=shown)


def _skipped(applied: work_order.EditResult) -> list[str]:
    """Returns which literal edits were left to the agent, and why."""
    return [
        f"the edit for {edit.issue} was not applied ({why}): {one_line(edit.find, LONGEST_FIND)}"
        for edit, why in applied.unmatched
    ]


def _lines(text: str) -> list[tuple[str, list[str]]]:
    """Returns the indentation and the words of each line, which a fix may be about."""
    return [(line[: -len(line.lstrip())], line.split()) for line in text.strip().split("\n")]


def file_state(state: FlowState, path: str) -> FlowState:
    """Returns a view of the state in which one file is the whole artifact."""
    judged = state.adjudication
    ledger = state.ledger
    own = {each.id for each in ledger.findings.values() if each.path == path}
    raw: dict[str, Any] = {key: value for key, value in state.raw.items() if key != "files"}
    if judged is not None:
        raw["last_adjudication"] = _about(judged, own).to_json()
    # In the view of one file, that file is a text without a name, as in a flow about one text.
    findings = {each: replace(ledger.findings[each], path="") for each in own}
    return FlowState(
        {
            **raw,
            "artifact": state.files[path],
            "findings": Ledger(findings, ledger.iteration).to_json(),
            "critiques_by_step": {
                step: [_critique_about(each, path) for each in critiques]
                for step, critiques in state.critiques_by_step.items()
            },
        }
    )


def _to_fix(state: FlowState) -> list[str]:
    """Returns the files with findings that the judge pursues."""
    judged, findings = state.adjudication, state.ledger.findings
    pursued = judged.pursued() if judged is not None else []
    paths = {findings[d.finding_id].path for d in pursued if d.finding_id in findings}
    return [path for path in state.files if path in paths]


def _about(judged: Adjudication, own: set[str]) -> Adjudication:
    """Returns a verdict on some findings, with their part of the work order."""
    others = [d for d in judged.decisions if d.finding_id not in own]
    names = {name for d in others for name in (d.issue_id, d.finding_id)}
    return replace(
        judged,
        decisions=tuple(d for d in judged.decisions if d.finding_id in own),
        bill_of_work=work_order.without_issues(judged.bill_of_work, names),
    )


def _critique_about(critique: Mapping[str, Any], path: str) -> dict[str, Any]:
    issues = [each for each in critique["issues"] if each.get("path", "") == path]
    plain = [{key: value for key, value in each.items() if key != "path"} for each in issues]
    sections = critique["approved_sections"] if tuple(critique.get("paths", ())) == (path,) else []
    kept = {key: value for key, value in critique.items() if key != "paths"}
    return {**kept, "issues": plain, "approved_sections": sections}


def _remarks(update: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(update.get("remarks", ()))


MOST_CHARACTERS = 8_000_000
"""A longer artifact is treated as an error of the agent."""


def checked_artifact(text: str, before: str = "") -> str:
    """Returns an agent's text as an artifact; raises `AgentBadOutput` if it cannot be one.

    `before` is the text that it replaces.
    """
    if not text.strip():
        raise AgentBadOutput("the answer is empty; answer with the whole text and nothing else")
    if len(text) > MOST_CHARACTERS:
        raise AgentBadOutput(
            f"the answer has {len(text):,} characters; at most {MOST_CHARACTERS:,} are accepted"
        )
    # Seen with small models: asked to fix a text, they answer with a review of it, which would
    # replace the text.
    if is_critique(text) and not is_critique(before):
        raise AgentBadOutput("the answer is a critique, not the text; answer with the whole text")
    if variable := hidden_in(text):
        raise AgentBadOutput(
            f"artifact.md contained the value of {variable}; write it without that value"
        )
    try:
        text.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair fits into no file: halves are joined, or marked as lost.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text if text.endswith("\n") else f"{text}\n"


MOST_APPROVED = 20
"""Approved passages that a fixer is shown."""


def bill_of(state: FlowState, applied: work_order.EditResult | None = None) -> str:
    """Returns the work order, or what is left of it after some edits were applied."""
    judged = state.adjudication
    if judged is None:
        return ""
    bill = judged.bill_of_work
    entries = work_order.work_order_entries(bill)
    # A work order without entries is prose. It cannot be divided, so the agent gets all of it.
    if bill.strip() and (applied is None or not entries):
        return bill
    answered: set[str] = set()
    unfinished: list[work_order.Edit] = []
    if applied is not None:
        answered = _answered(judged, applied)
        # Of an issue that was only fixed in part, the edits that did not match are left.
        unfinished = [edit for edit, _why in applied.unmatched if edit.issue in answered]
    # What was applied exactly must not be asked for again: an agent would apply it twice.
    settled = answered | dismissed_names(judged)
    open_entries = [text for issue, text in entries if issue not in settled]
    mentioned = answered.union(issue for issue, _text in entries)
    parts = [
        work_order.format_work_order(unfinished, []),
        *open_entries,
        work_order.format_work_order([], _unmentioned(state, judged, mentioned)),
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part)


def findings_to_fix(
    state: FlowState, constraints: Mapping[str, Constraint], bill: str
) -> list[str]:
    """Returns the pursued findings that a bill is about, with their rules and what it leaves out.

    The judge's own bill and a bill without entries may be about any of them; what is left of a bill
    after literal edits has an entry for each finding that is left.
    """
    judged = state.adjudication
    if judged is None:
        return []
    issues: dict[str, CritiqueIssue] = {}
    for critique in state.critiques:
        for issue in critique.issues:
            known = issues.get(issue.finding_id, issue)
            issues[issue.finding_id] = min(known, issue, key=lambda each: each.severity.rank)
    unreported = {each.id: issue_of(each) for each in state.ledger.open()}
    issues = {**unreported, **issues}
    entries = {issue for issue, _text in work_order.work_order_entries(bill)}
    if bill == judged.bill_of_work:
        # A judge may forget an entry, or name it by an id that two critics have used.
        entries = set()
    texts = [
        "\n".join(_order_lines(decision, issues[decision.finding_id], constraints, flat(bill)))
        for decision in judged.pursued()
        if decision.finding_id in issues
        and (not entries or entries & {decision.issue_id, decision.finding_id})
    ]
    return [text for text in texts if text]


def requests_of(state: FlowState) -> list[str]:
    """Returns the change requests of a human, if there is nothing else to carry out."""
    judged, findings = state.adjudication, state.ledger.findings
    pursued = [d.finding_id for d in judged.pursued()] if judged is not None else []
    known = [findings[each] for each in pursued if each in findings]
    only = len(known) == len(pursued) and all(each.constraint == SIGN_OFF for each in known)
    return [each.id for each in known] if only else []


def approved_sections(state: FlowState) -> list[str]:
    """Returns the passages of the artifact that critics approved."""
    sections = [each for critique in state.critiques for each in critique.approved_sections]
    texts = [": ".join(filter(None, (each.get("location"), each.get("note")))) for each in sections]
    return list(dict.fromkeys(filter(None, texts)))[:MOST_APPROVED]


def carried_out(state: FlowState, *, changed: bool) -> dict[str, Any]:
    """Returns the update after a step carried out the work order, or left the text unchanged."""
    return {"refined": {"verdict": _verdict_digest(state), "changed": changed}}


def already_applied(state: FlowState) -> bool:
    """Tells whether the last work order has already been carried out in this artifact."""
    refined = state.raw.get("refined") or {}
    return bool(refined.get("changed") and refined["verdict"] == _verdict_digest(state))


def _verdict_digest(state: FlowState) -> str:
    return digest(state.raw.get("last_adjudication"))[:SHORT]


def _order_lines(
    decision: AdjudicationDecision,
    issue: CritiqueIssue,
    constraints: Mapping[str, Constraint],
    bill: str,
) -> list[str]:
    """Returns what the work order does not say about a finding; nothing if it says everything."""
    constraint = constraints.get(decision.constraint, Constraint(decision.constraint))
    rules = {rule.id: f": {flat(rule.text)}" for rule in constraint.rules}
    rule = rules.get(issue.rule_id, "")
    details = {
        "problem": issue.finding,
        "quote": issue.evidence,
        "impact": issue.impact,
        "location": issue.location,
        "suggested fix": issue.suggested_fix or "",
        "guidance of the judge": decision.guidance or "",
    }
    new = {name: flat(text) for name, text in details.items() if flat(text) not in bill}
    lines = [f"  {name}: {text}" for name, text in new.items()]
    if issue.edit and flat(issue.edit.find) not in bill:
        lines += edit_lines(issue.edit)
    heading = f"[{issue.severity}] {decision.issue_id} violates {issue.rule_id or constraint.id}"
    return [f"{heading}{rule}", *lines] if rule or lines else []


def _answered(judged: Adjudication, applied: work_order.EditResult) -> set[str]:
    """Returns the issues that some edit was applied for, by both of their names."""
    issues = {edit.issue for edit in applied.applied if edit.issue}
    names = [{d.issue_id, d.finding_id} for d in judged.decisions if d.finding_id]
    return issues.union(*(each for each in names if each & issues))


def _unmentioned(
    state: FlowState, judged: Adjudication, mentioned: set[str]
) -> list[tuple[str, str, str]]:
    """Returns what the judge pursues without mentioning it in the work order."""
    findings = {finding.id: finding for finding in state.ledger.open()}
    return [
        (d.issue_id, d.severity.value, d.guidance or _instruction(findings.get(d.finding_id)))
        for d in judged.pursued()
        if not mentioned & {d.issue_id, d.finding_id}
    ]


def _instruction(finding: Finding | None) -> str:
    if finding is None:
        return "Fix this."
    passage = "" if finding.omission else f" ({finding.quote})"
    return f"Fix this problem: {finding.finding}{passage}"


def wanted_edits(state: FlowState, bill: str) -> list[work_order.Edit]:
    """Returns the literal edits of a bill without those for issues that the judge dismissed."""
    judged = state.adjudication
    lasting = {d.issue_id: d.finding_id for d in judged.decisions if d.finding_id} if judged else {}
    dismissed = dismissed_names(judged) if judged else set()
    return [
        # Findings keep their lasting id from round to round, and so do the changes they caused.
        replace(edit, issue=lasting.get(edit.issue, edit.issue))
        for edit in work_order.parse_work_order(bill)
        if edit.issue not in dismissed
    ]


def dismissed_names(judged: Adjudication) -> set[str]:
    """Returns the issues that a judge dismissed, by both of their names."""
    dismissed = (d for d in judged.decisions if d.status is Pursuit.DISMISSED)
    return {name for d in dismissed for name in (d.issue_id, d.finding_id)}
