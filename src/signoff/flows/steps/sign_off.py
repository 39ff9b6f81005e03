"""Has a human sign off: approve, reject, or ask for changes, which a refine step then makes.

The answer is bound to the digest of what was shown: see `decision_material`. The text of a change
request becomes a finding of the constraint `sign_off`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from signoff.core.context import StepContext
from signoff.core.digest import SHORT, text_digest
from signoff.core.effects import ProductPrompt
from signoff.core.outcome import Outcome
from signoff.core.questions import Option
from signoff.core.requests import SIGN_OFF, Answer, Choice, Request
from signoff.core.severity import LEAST_BLOCKING
from signoff.core.stop_reason import Rejected
from signoff.core.words import Label
from signoff.flows.state import FlowState, after
from signoff.flows.steps.decision_material import describe_open, sign_off_material
from signoff.flows.steps.ending import save_result
from signoff.flows.steps.handler import REASON, FlowHandler, StepResult
from signoff.flows.steps.updates import keep_answer, with_round
from signoff.review.adjudication import Adjudication, Verdict
from signoff.review.critique import OMISSION
from signoff.review.finding import Finding
from signoff.review.policy import pursue
from signoff.review.work_order import format_work_order

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
            update |= await save_result(ctx, self.flow, approved, warnings, ask=True)
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
