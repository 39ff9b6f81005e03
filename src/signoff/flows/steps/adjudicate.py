"""Judges the findings of the critics: by an agent, or by the rules alone.

The judge's verdict is checked. An approval is valid only if no blocking finding is still
pursued, and a finding that the judge does not mention is pursued.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from signoff.core.checked import Checked, Otherwise
from signoff.core.context import StepContext
from signoff.core.delta import Append
from signoff.core.effects import ProductPrompt
from signoff.core.outcome import Outcome
from signoff.core.requests import RETRY, Choice, Request
from signoff.core.stop_reason import NotConverging
from signoff.flows.flow import Flow
from signoff.flows.state import (
    UNREVIEWED,
    FlowState,
    after,
    critiques_in_scope,
    left_unadjudicated,
    read,
)
from signoff.flows.step import POLICY_JUDGE
from signoff.flows.steps.ending import at_limit, save_approved, save_unapproved
from signoff.flows.steps.handler import FlowHandler, StepResult
from signoff.flows.steps.updates import (
    ask_for_guidance,
    keep_answer,
    keep_warnings,
    with_best,
    with_round,
)
from signoff.flows.steps.work_order import bill_of
from signoff.light_dataclass import light_dataclass
from signoff.review.adjudication import Adjudication, Verdict
from signoff.review.convergence import find_stop_reason, pursued_in_a_row
from signoff.review.critique import Critique
from signoff.review.findings import Finding
from signoff.review.parsing import parse_adjudication
from signoff.review.policy import check_verdict, conflicting_criticals, for_judge, policy_judge
from signoff.review.prompts import adjudicator_prompt

RULES = "rules"
CONTINUE, STOP = "continue", "stop"


@light_dataclass(frozen=True)
class AdjudicateHandler(FlowHandler):
    """The handler of an adjudicate step."""

    """The name of this handler in the digests of recorded runs."""

    async def __call__(self, ctx: StepContext) -> StepResult:
        """Decides on the critiques in scope, and whether there is anything left to do."""
        state = FlowState(ctx.step_state)
        critiques = for_judge(read(critiques_in_scope(ctx.step_state, self.step.scope)))
        judged = await self._judge(ctx, state, critiques)
        if not critiques:
            reviewed = any(state.critiques_by_step.values())
            judged = _noted(judged, "no critique was left to judge" if reviewed else UNREVIEWED)
        judged = _with_bill(judged, state)
        pursued = sorted({d.finding_id for d in judged.pursued() if d.finding_id})
        ledger = state.ledger.apply(judged)
        update: dict[str, Any] = {
            "last_adjudication": judged.to_json(),
            "unadjudicated_critiques": left_unadjudicated(ctx.step_state, self.step.scope),
            "pursued": Append([{"iteration": ctx.iteration, "findings": pursued}]),
            "findings": ledger.to_json(),
            "rounds": with_round(state, ledger, ctx.iteration),
            **self.record(agent=self.agent),
            **keep_warnings(ctx, judged.notes),
        }
        # A version is ranked after the verdict, so dismissed findings do not count against it.
        update |= with_best(ctx, after(ctx.step_state, update))
        if judged.status is Verdict.APPROVED:
            return Outcome.OK, update | await self._approve(ctx, after(ctx.step_state, update))
        return await self._continue(ctx, judged, update)

    async def _approve(self, ctx: StepContext, state: dict[str, Any]) -> dict[str, Any]:
        """Saves the artifact if the run ends with this approval; returns the update."""
        if self.flow.finishes(self.step):
            return await save_approved(ctx, self.flow, state)
        if not (self.flow.starts_round_on_approval(self.step) and at_limit(ctx, self.flow)):
            return {}
        why = f"{ctx.iteration} iterations; approval by {self.step.id!r} does not end the run"
        return await save_unapproved(ctx, self.flow, state, why)

    async def _judge(
        self, ctx: StepContext, state: FlowState, critiques: Sequence[Critique]
    ) -> Adjudication:
        block_on = self.flow.config.adjudication.block_on
        by_rules = partial(policy_judge, critiques, iteration=ctx.iteration, block_on=block_on)
        if self.agent == POLICY_JUDGE:
            return by_rules()
        judged = await ctx.ask(
            self.agent,
            judge_prompt(self.flow, state.artifact, critiques, state.guidance),
            key="verdict",
            read=lambda reply: parse_adjudication(reply.text, iteration=ctx.iteration),
            otherwise=Otherwise(self._unreadable, key="unreadable"),
            **self.call_options,
        )
        if judged.value is not None:
            return check_verdict(judged.value, critiques, block_on)
        return _noted(by_rules(), f"{self.agent}'s answers could not be read; the rules decided")

    def _unreadable(self, last: Checked[Adjudication]) -> Request:
        prompt = (
            f"The judge {self.agent!r} gave two answers that cannot be read: "
            f"{'; '.join(last.problems).rstrip('.')}.\n"
            f"{RETRY}: ask it again. {RULES}: let the rules decide. Then every finding is pursued, "
            "and the artifact is approved unless one of them blocks."
        )
        return Choice(ProductPrompt(prompt), [RETRY, RULES], question_id="adjudication")

    async def _continue(
        self, ctx: StepContext, judged: Adjudication, update: dict[str, Any]
    ) -> StepResult:
        """Continues with the next round, unless a rule or a human ends the run here."""
        state = FlowState(after(ctx.step_state, update))
        update |= await self._escalate(ctx, judged, state)
        stop = find_stop_reason(
            state.rounds, state.ledger, state.pursued, self.flow.config.convergence
        )
        if stop is not None:
            why = f"not converging ({stop.rule}): {stop.evidence}"
            if await self._ends_here(ctx, why, state.ledger.open(), update):
                ended = await save_unapproved(ctx, self.flow, after(ctx.step_state, update), why)
                reason = NotConverging(stop.rule, stop.evidence)
                return Outcome.FAIL, update | ended | {"_reason": reason}
        return await self.leave(ctx, update, Outcome.ITERATE)

    async def _escalate(
        self, ctx: StepContext, judged: Adjudication, state: FlowState
    ) -> dict[str, Any]:
        config, findings = self.flow.config.adjudication, state.ledger.findings
        stuck = pursued_in_a_row(state.pursued, config.thrash_threshold)
        if "thrashing" in config.triggers and stuck:
            prompt = (
                "The same findings come back round after round. How should they be dealt with? "
                "Your answer goes to the judge and the author.\n"
                f"{_format_findings([findings[each] for each in stuck if each in findings])}"
            )
            # The count starts again, or every later round would ask the same question.
            return {**await ask_for_guidance(ctx, "thrashing", prompt), "pursued": []}
        conflicts = conflicting_criticals(judged)
        if "conflicting_criticals" in config.triggers and conflicts:
            sides = [filter(None, (d.constraint, d.competing_constraint)) for d in conflicts]
            lines = [
                f"- {d.issue_id} ({' against '.join(constraints)})"
                for d, constraints in zip(conflicts, sides, strict=True)
            ]
            question = "Critical findings contradict each other. Which should win?"
            return await ask_for_guidance(ctx, "conflict", "\n".join([question, *lines]))
        return {}

    async def _ends_here(
        self, ctx: StepContext, why: str, findings: Sequence[Finding], update: dict[str, Any]
    ) -> bool:
        asks = "not_converging" in self.flow.config.adjudication.triggers
        if self.flow.config.convergence.action == "stop" and not asks:
            return True
        request = Choice(
            ProductPrompt(f"The loop is {why}\nContinue anyway?\n{_format_findings(findings)}"),
            [CONTINUE, STOP],
            question_id="not_converging",
        )
        answer = await ctx.wait(request, key="not_converging")
        if answer.value == CONTINUE and "human" not in update:
            update |= keep_answer(ctx, "not_converging", why, answer)
            update["pursued"] = []
        return bool(answer.value == STOP)


def judge_prompt(
    flow: Flow,
    artifact: str = "",
    critiques: Sequence[Critique] = (),
    guidance: Sequence[str] = (),
) -> str:
    """Returns the prompt for the judge of a flow."""
    config = flow.config.adjudication
    return adjudicator_prompt(
        goal=flow.goal.text,
        artifact=artifact,
        constraints=flow.constraints,
        critiques=critiques,
        block_on=config.block_on,
        tensions=[(t.axis, t.guidance, t.winner_on_conflict) for t in config.tensions],
        instructions=config.instructions,
        guidance=guidance,
    )


def _format_findings(findings: Sequence[Finding]) -> str:
    """Returns findings for a human, who cannot decide by their ids alone."""
    return "\n".join(
        f"- [{each.severity.value}] {each.id}: {' '.join(each.finding.split())}"
        for each in findings
    )


def _with_bill(judged: Adjudication, state: FlowState) -> Adjudication:
    """Returns a verdict with a work order built from it, if the judge wrote none."""
    if judged.status is not Verdict.REWRITE or judged.bill_of_work.strip() or not judged.pursued():
        return judged
    now = FlowState({**state.raw, "last_adjudication": judged.to_json()})
    composed = replace(judged, bill_of_work=bill_of(now))
    # Notes appear in status.md, whose text must be the same on a replay by a later release.
    return _noted(composed, "the judge wrote no work order; one was built from pursued findings")


def _noted(judged: Adjudication, note: str) -> Adjudication:
    return replace(judged, notes=(*judged.notes, note))
