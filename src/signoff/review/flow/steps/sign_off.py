"""How a flow ends with a result: what a human is shown and signs off, and what is written then.

What a human decides about is built once, from the run's state: nobody decides about what they
cannot see. The terminal, the page, REST, MCP and the run directory all show these values, and the
answer is bound to their digest. The text of a change request becomes a finding of the constraint
`sign_off`. `flows.end_view` shows every other end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from signoff.core.amounts import count, format_spend
from signoff.core.context import StepContext
from signoff.core.digest import SHORT, text_digest
from signoff.core.effects import Effect, EffectKind, ProductPrompt
from signoff.core.errors import UsageError
from signoff.core.one_line import cut
from signoff.core.outcome import Outcome
from signoff.core.questions import Option
from signoff.core.requests import SIGN_OFF, Answer, Choice, Question, Request
from signoff.core.severity import LEAST_BLOCKING
from signoff.core.stop_reason import Rejected
from signoff.core.words import FindingStatus, Label
from signoff.review.flow.coverage import constraint_results, file_coverage
from signoff.review.flow.model import Flow
from signoff.review.flow.state import (
    FlowState,
    after,
    finding_lines,
    keep_answer,
    shortened,
    with_round,
)
from signoff.review.flow.steps.handler import REASON, FlowHandler, StepResult
from signoff.review.pure.constraint import Constraint
from signoff.review.pure.coverage import describe_missed
from signoff.review.pure.critique import OMISSION, Adjudication, Verdict
from signoff.review.pure.diff import unified_diff
from signoff.review.pure.finding import Finding, blocking_first
from signoff.review.pure.findings import Ledger
from signoff.review.pure.policy import pursue
from signoff.review.pure.work_order import format_work_order

APPROVE, CHANGES, REJECT = "approve", "request changes", "reject"


@dataclass(frozen=True)
class SignOffHandler(FlowHandler):
    """The handler of a sign-off step."""

    async def perform(self, ctx: StepContext) -> StepResult:
        """Asks a human to approve what has passed review."""
        request = self._request(ctx, FlowState(ctx.step_state))
        answer = await ctx.wait(request, key=SIGN_OFF)
        update: dict[str, Any] = {
            **keep_answer(ctx, SIGN_OFF, str(request.prompt), answer),
            **self.record(by=answer.by, decision=answer.value),
        }
        if answer.value == REJECT:
            return Outcome.FAIL, {**update, REASON: Rejected(answer.by, answer.text)}
        # The human has looked at what their last request led to, so it is no longer open, whatever
        # they decide now.
        update |= _settled(FlowState(ctx.step_state), ctx.iteration)
        if answer.value == CHANGES:
            state = FlowState(after(ctx.step_state, update))
            return Outcome.ITERATE, {**update, **_change_request(ctx, state, answer)}
        if self.step.id == self.flow.config.workflow[-1].id:
            approved = after(ctx.step_state, update)
            warnings = FlowState(approved).result_warnings
            update |= await save_result(ctx, self.flow, approved, warnings)
            update["approved_by"] = answer.by or "a human"
        return Outcome.OK, update

    def _request(self, ctx: StepContext, state: FlowState) -> Request:
        opened = describe_open(state.ledger)
        about = (
            f"this is the result, with {opened}" if state.ledger.open() else "this is the result"
        )
        options = [Option(APPROVE, description=about)]
        if self.flow.fixes_requests_of(self.step) is not None:
            what = "write what to change; it is fixed and reviewed again"
            options.append(Option(CHANGES, requires_input=True, description=what))
        options.append(Option(REJECT, description="the run ends without a result"))
        passed = "It passed review" if state.passed else "It has not passed review"
        text = f"Sign off this result? {passed}, with {opened}."
        if state.has_files and self.flow.config.output.write_back == "on_approval":
            text += " If you approve it, its files replace those of the project."
        # Without a deadline the run waits for ever: nobody's silence approves.
        deadline = timedelta(seconds=self.step.deadline) if self.step.deadline else None
        return Choice(
            ProductPrompt(text, {"version": state.version, "step": self.step.id}),
            options,
            question_id=SIGN_OFF,
            shown=sign_off_material(ctx, self.flow, state),
            deadline=deadline,
            default=self.step.default,
            approves=(APPROVE,),
            presence=self.step.presence,
        )


def _settled(state: FlowState, iteration: int) -> dict[str, Any]:
    """Returns the update in which earlier change requests are fixed: their change was decided on.

    Another request replaces them, whatever it is about.
    """
    ledger = state.ledger.settle()
    rounds = {"rounds": with_round(state, ledger, iteration)} if state.rounds else {}
    return {"findings": ledger.to_json(), **rounds}


def _change_request(ctx: StepContext, state: FlowState, answer: Answer) -> Mapping[str, Any]:
    """Returns the update with a finding for each file the request is about, and its verdict."""
    findings = [_finding(ctx, state, path, answer) for path in _files_of(ctx, state, answer.text)]
    decisions = tuple(replace(pursue(each), guidance=answer.text) for each in findings)
    entries = [(each.id, each.severity.value, answer.text) for each in findings]
    verdict = Adjudication(
        ctx.iteration, Verdict.REWRITE, decisions, bill_of_work=format_work_order([], entries)
    )
    old = state.ledger
    ledger = replace(old, findings={**old.findings, **{each.id: each for each in findings}})
    return {
        "findings": ledger.to_json(),
        "last_adjudication": verdict.to_json(),
        "rounds": with_round(state, ledger, ctx.iteration),
    }


def _files_of(ctx: StepContext, state: FlowState, text: str) -> list[str]:
    """Returns the files a request is about: those it names, else those that were changed."""
    if not state.has_files:
        return [""]
    named = [path for path in state.files if path in text]
    before = ctx.workflow_params["files"]
    changed = [path for path, content in state.files.items() if content != before.get(path)]
    return named or changed or list(state.files)


def _finding(ctx: StepContext, state: FlowState, path: str, answer: Answer) -> Finding:
    # The round is part of the identity: the same words in a later round are a new request, because
    # the first one was answered by a change.
    identity = "\x1f".join([SIGN_OFF, str(ctx.iteration), path, answer.text])
    return Finding(
        id=text_digest(identity)[:SHORT],
        constraint=SIGN_OFF,
        rule="",
        severity=LEAST_BLOCKING,
        quote=OMISSION,
        location="",
        finding=answer.text,
        first=ctx.iteration,
        last=ctx.iteration,
        history=((ctx.iteration, Label.NEW),),
        flagged_by=(answer.by or "a human",),
        artifact=state.content.digest(path),
        path=path,
    )


def at_limit(ctx: StepContext, flow: Flow) -> bool:
    """Tells whether no further round may start unless a human grants more."""
    # Each grant is as many rounds as the limit, so every multiple is a limit again.
    return ctx.iteration % flow.config.max_iterations == 0


async def save_result(
    ctx: StepContext, flow: Flow, state: Mapping[str, Any], warnings: Sequence[str] = ()
) -> dict[str, Any]:
    """Writes the artifact to `final/`; returns the update.

    `warnings` are what the user should know before using the artifact, such as a changed passage
    that was not read again. They are shown at the end of the run and in `status.md`.
    """
    output, view = flow.config.output, FlowState(state)
    update: dict[str, Any] = {}
    if not view.has_files:
        await ctx.write(f"{output.dir}/{output.filename}", view.artifact)
    elif output.write_back == "on_approval":
        # The end of a run shows the files in `final/`; here they go back to where they are from.
        update = {"written": await write_back(ctx, flow, view.files)}
    return update | note_warnings(warnings)


def note_warnings(warnings: Sequence[str]) -> dict[str, Any]:
    """Returns the update that keeps what a user should know before using the artifact."""
    return {"result_warnings": [shortened(each) for each in warnings]} if warnings else {}


async def write_back(
    ctx: StepContext, flow: Flow, files: Mapping[str, str]
) -> Mapping[str, list[str]]:
    """Replaces the files that a run has changed; returns what was written.

    If any file is not what the run has read, or the new text already, nothing is written: half of
    a reviewed change was reviewed by nobody. The run fails then, and a resume writes again. A
    process that dies in between leaves each file old or new, and a resume writes the rest.
    """
    changed, expected = changed_files(ctx.workflow_params["files"], files)
    if not changed:
        return {"written": []}
    if ctx.port is None:
        raise UsageError("files can only be written by a run")
    # Where the project is does not identify the request: it may be moved between two resumes.
    material = {"files": changed, "expected": expected}
    payload: dict[str, Any] = {"root": str(flow.root), "strict": True, **material}
    effect = Effect(EffectKind.REPLACE, "write back", payload, material=material)
    reply: dict[str, list[str]] = await ctx.port.perform(ctx, effect)
    return reply


def changed_files(
    before: Mapping[str, str], after: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the files that differ, and the digests of what they were."""
    changed = {path: text for path, text in after.items() if text != before.get(path)}
    return changed, {path: text_digest(before.get(path, "")) for path in changed}


OPEN_FINDINGS = "open findings"


def sign_off_material(ctx: StepContext, flow: Flow, state: FlowState) -> dict[str, Any]:
    """Returns what a human signs off: what is open, who read it, then the result itself."""
    by_status: dict[FindingStatus, list[Finding]] = {status: [] for status in FindingStatus}
    block_on = flow.config.adjudication.block_on
    findings = sorted(state.ledger.findings.values(), key=blocking_first(block_on))
    for each in findings:
        by_status[each.status].append(each)
    results = constraint_results(state.raw, state.content, findings, flow.by_id)
    missed = file_coverage(state.raw.get("skipped") or {}).missed
    # A human who approves should also see what will not be fixed, and who decided so.
    groups = {
        "fixed at your request": by_status[FindingStatus.ADDRESSED],
        "dismissed findings": by_status[FindingStatus.DISMISSED],
        "ignored findings": by_status[FindingStatus.IGNORED],
    }
    shown: dict[str, Any] = {
        OPEN_FINDINGS: finding_lines(state.content, by_status[FindingStatus.OPEN]),
        "goal": cut(flow.goal.text),
        "constraints": {each.constraint: each.words for each in results},
        "not read": [*describe_missed(missed, len(missed))],
        **{name: finding_lines(state.content, found) for name, found in groups.items()},
        **result_material(ctx, state),
    }
    if ctx.port is not None:
        shown["cost"] = format_spend(ctx.port.spend())
    return {name: value for name, value in shown.items() if value or name == OPEN_FINDINGS}


def result_material(ctx: StepContext, state: FlowState) -> dict[str, Any]:
    """Returns the text, or what was changed in files, or which files there are."""
    if not state.has_files:
        return {"artifact": state.artifact}
    # A reviewer of files wants to see what was changed. Whole files would hide it.
    diff = unified_diff(ctx.workflow_params["files"], state.files)
    return {"changes": diff} if diff else {"files": [*state.files]}


def judging_material(
    flow: Flow, state: FlowState, constraints: Iterable[str], paths: Sequence[str] = ()
) -> dict[str, Any]:
    """Returns the goal, the rules and the text, for a human in the place of a critic or judge."""
    headed = "\n".join(f"--- {path}\n{state.files[path]}" for path in paths if path in state.files)
    text = headed if state.has_files else state.artifact
    rules = [_rules(flow.by_id[name]) for name in dict.fromkeys(constraints) if name in flow.by_id]
    material = {"goal": flow.goal.text, "rules": "\n\n".join(rules), "artifact": text}
    return {name: cut(value) for name, value in material.items() if value}


def findings_material(flow: Flow, state: FlowState, ids: Iterable[str]) -> dict[str, Any]:
    """Returns the same for a human who decides about findings, which name their files and lines."""
    known = state.ledger.findings
    return judging_material(flow, state, [known[each].constraint for each in ids if each in known])


async def ask_about_findings(
    ctx: StepContext,
    flow: Flow,
    state: FlowState,
    question_id: str,
    prompt: str,
    ids: Sequence[str],
) -> dict[str, Any]:
    """Asks an open question about findings, of a human unless the flow lets agents answer.

    Returns the update that stores the answer, and ties it to the findings.
    """
    question = Question(
        ProductPrompt(prompt),
        question_id=question_id,
        answerable_by=flow.config.adjudication.answerable_by,
        shown=findings_material(flow, state, ids),
    )
    update = keep_answer(ctx, question_id, prompt, await ctx.wait(question, key=question_id))
    (entry,) = update["human"]
    # Without the tie, the same finding would be asked about again in the next round.
    return {**update, "findings": state.ledger.decide(ids, str(entry["answer"])).to_json()}


def describe_open(ledger: Ledger) -> str:
    """Returns how many findings are open: `2 findings open (1 HIGH, 1 LOW)`."""
    found = ledger.open()
    if not found:
        return "no findings open"
    severities = [each.severity.value for each in found]
    listed = ", ".join(f"{severities.count(name)} {name}" for name in dict.fromkeys(severities))
    return f"{count(len(found), 'finding')} open ({listed})"


def _rules(constraint: Constraint) -> str:
    """Returns a constraint as its author worded it."""
    lines = [f"- {rule.id}: {rule.text}" for rule in constraint.rules]
    return "\n".join([f"{constraint.id}: {constraint.summary}", *lines])
