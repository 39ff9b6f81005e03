"""Reviews the artifact: one reading for each constraint and each of its critics.

Parallel critics all read to the end, and what their findings do to the review is applied
afterwards. Serial ones read one constraint after the other, and a finding that halts or
escalates spares the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from signoff.core.context import StepContext
from signoff.core.effects import ProductPrompt
from signoff.core.outcome import Outcome
from signoff.core.requests import Question
from signoff.flows.flow import Flow
from signoff.flows.reviewers import reviewers_of
from signoff.flows.selection import resolve_constraints_for_step
from signoff.flows.state import FlowState, after, stored
from signoff.flows.step import StepKind, WorkflowStep
from signoff.flows.steps.critic import CriticHandler
from signoff.flows.steps.ending import Work, at_last_round, save_unapproved
from signoff.flows.steps.updates import (
    critique_warnings,
    keep_answer,
    keep_warnings,
    with_best,
    with_round,
)
from signoff.review.behaviors import IssueBehavior
from signoff.review.critique import Critique, CritiqueIssue
from signoff.review.evidence import ArtifactText
from signoff.review.finding import is_set_aside

STOPS = (IssueBehavior.HALT, IssueBehavior.ESCALATE)


@dataclass(frozen=True)
class Critics:
    """The handler of a critique step."""

    flow: Flow
    step: WorkflowStep

    @property
    def definition(self) -> list[Any]:
        """What a run depends on; the flow itself is kept with the run."""
        return ["flows", "critique", 1]

    async def __call__(self, ctx: StepContext) -> Work:
        """Has every matching constraint read, and keeps what was found.

        What a person has to decide on is asked in a visit of its own: by then the reviews
        are kept, so that everybody can look at what the question is about.
        """
        state = FlowState(ctx.step_state)
        pending = ctx.step_state.get("escalation")
        if pending is not None:
            answered = await self._escalate(ctx, pending)
            return await self._onward(ctx, {**answered, "escalation": None})
        critiques = await self._read_all(ctx, state)
        before = _read_before(state)
        ledger, critiques = state.ledger.record(
            iteration=ctx.iteration,
            critiques=critiques,
            artifact=state.artifact,
            previous_artifact=before,
        )
        made = [stored(critique, self.step.id) for critique in critiques]
        update: dict[str, Any] = {
            "critiques_by_step": {**state.critiques_by_step, self.step.id: made},
            "unadjudicated_critiques": [*state.unadjudicated, *made],
            "last_critique_step": self.step.id,
            "findings": ledger.to_json(),
            "rounds": with_round(state, ledger, ctx.iteration),
            "read": {"artifact": state.artifact, "before": before},
            "step_index": self.flow.leads_to(self.step),
            "step": {"kind": "critique", "step": self.step.id, "halted": _halted(critiques)},
            **keep_warnings(ctx, critique_warnings(critiques)),
        }
        if not self.flow.of_kind(StepKind.ADJUDICATE):
            update |= with_best(ctx, after(ctx.step_state, update))
        escalated = _told([i for c in critiques for i in c.issues if _escalates(i)])
        if escalated:
            index = self.flow.index(self.step)
            return Outcome.ITERATE, {**update, "escalation": escalated, "step_index": index}
        return await self._onward(ctx, update)

    async def _onward(self, ctx: StepContext, update: dict[str, Any]) -> Work:
        if at_last_round(ctx, self.flow, self.step):
            update |= await save_unapproved(ctx, self.flow, after(ctx.step_state, update))
        return Outcome.OK, update

    async def _read_all(self, ctx: StepContext, state: FlowState) -> list[Critique]:
        read = partial(
            CriticHandler(self.flow, self.step, state), text=ArtifactText(state.artifact)
        )
        groups = [
            [
                {"constraint": c.id, "agent": agent}
                for agent in reviewers_of(self.flow, self.step, c)
            ]
            for c in resolve_constraints_for_step(self.step, self.flow.constraints)
        ]
        if self.step.execution == "parallel":
            items = [item for group in groups for item in group]
            return _readings(await ctx.map(items, read, key="critics"))
        critiques: list[Critique] = []
        for group in groups:
            critiques += _readings(await ctx.map(group, read, key=group[0]["constraint"]))
            if any(_does(issue, *STOPS) for c in critiques for issue in c.issues):
                break
        return critiques

    async def _escalate(self, ctx: StepContext, listed: str) -> dict[str, Any]:
        prompt = f"Review step {self.step.id!r} found what a person must decide on:\n{listed}"
        answer = await ctx.wait(
            Question(ProductPrompt(prompt), question_id="escalate"), key="escalate"
        )
        return {
            **keep_answer(ctx, "escalate", prompt, answer),
            "step_index": self.flow.leads_to(self.step),
            "step": {"kind": "answered", "step": self.step.id},
        }


def _told(issues: Sequence[CritiqueIssue]) -> str:
    """Returns issues as a person reads them, each finding once."""
    return "\n".join(
        f"- [{issue.severity}] {issue.id}: {issue.finding}"
        + (f"\n  > {issue.evidence}" if issue.evidence else "")
        for issue in {each.finding_id: each for each in issues}.values()
    )


def _does(issue: CritiqueIssue, *behaviors: IssueBehavior) -> bool:
    """Tells whether an issue has such an effect; one that is kept from the judge has none."""
    return not is_set_aside(issue) and issue.behavior in behaviors


def _escalates(issue: CritiqueIssue) -> bool:
    return _does(issue, IssueBehavior.ESCALATE)


def _halted(critiques: Sequence[Critique]) -> bool:
    return any(_does(issue, IssueBehavior.HALT) for c in critiques for issue in c.issues)


def _readings(results: Sequence[Any]) -> list[Critique]:
    return [Critique.from_json(each) for each in results]


def _read_before(state: FlowState) -> str:
    """Returns the version that was reviewed before this one; empty for the first."""
    read = state.raw.get("read")
    if read is None:
        return ""
    return str(read["before"] if read["artifact"] == state.artifact else read["artifact"])
