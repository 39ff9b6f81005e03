"""Reviews the artifact: one review for each constraint and each of its critics.

Parallel critics all finish, and only then do the behaviors of their findings apply. Serial
critics work one constraint after the other, and a finding that halts or escalates skips the
remaining ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.flows.state import FlowState, after, stored
from signoff.flows.step import StepKind
from signoff.flows.steps.critic import CriticHandler
from signoff.flows.steps.handler import FlowHandler, StepResult
from signoff.flows.steps.updates import (
    ask_for_guidance,
    critique_warnings,
    keep_warnings,
    with_best,
    with_round,
)
from signoff.light_dataclass import light_dataclass
from signoff.review.behaviors import IssueBehavior
from signoff.review.critique import Critique, CritiqueIssue
from signoff.review.evidence import ArtifactText
from signoff.review.finding import is_set_aside


@light_dataclass(frozen=True)
class CritiqueHandler(FlowHandler):
    """The handler of a critique step."""

    async def __call__(self, ctx: StepContext) -> StepResult:
        """Reviews the artifact against every matching constraint and stores the findings.

        A finding that escalates is asked about in a visit of its own: by then the reviews are
        stored, so the human can look at what the question is about.
        """
        state = FlowState(ctx.step_state)
        pending = ctx.step_state.get("escalation")
        if pending is not None:
            return await self._escalate(ctx, pending)
        critiques = await self._review(ctx, state)
        before = _previously_reviewed(state)
        ledger, critiques = state.ledger.record(
            iteration=ctx.iteration,
            critiques=critiques,
            artifact=state.artifact,
            previous_artifact=before,
        )
        entries = [stored(critique, self.step.id) for critique in critiques]
        halted = bool(_issues_that(critiques, IssueBehavior.HALT))
        update: dict[str, Any] = {
            "critiques_by_step": {**state.critiques_by_step, self.step.id: entries},
            "unadjudicated_critiques": [*state.unadjudicated, *entries],
            "last_critique_step": self.step.id,
            "findings": ledger.to_json(),
            "rounds": with_round(state, ledger, ctx.iteration),
            # The next review compares with this version: a finding whose quote is new was
            # introduced by a fix, the others were overlooked.
            "read": {"artifact": state.artifact, "before": before},
            **self.record(halted=halted),
            **keep_warnings(ctx, critique_warnings(critiques)),
        }
        if not self.flow.of_kind(StepKind.ADJUDICATE):
            update |= with_best(ctx, after(ctx.step_state, update))
        if escalated := _issues_that(critiques, IssueBehavior.ESCALATE):
            index = self.flow.index(self.step)
            update |= {"escalation": _format_issues(escalated), "step_index": index}
            return Outcome.ITERATE, update
        return await self.leave(ctx, update)

    async def _review(self, ctx: StepContext, state: FlowState) -> list[Critique]:
        critic = CriticHandler(self.flow, self.step, state, ArtifactText(state.artifact))
        groups = [
            [{"constraint": c.id, "agent": agent} for agent in self.flow.reviewers(self.step, c)]
            for c in self.flow.selected(self.step)
        ]
        if self.step.execution == "parallel":
            items = [item for group in groups for item in group]
            return _critiques(await ctx.map(items, critic, key="critics"))
        critiques: list[Critique] = []
        for group in groups:
            critiques += _critiques(await ctx.map(group, critic, key=group[0]["constraint"]))
            if _issues_that(critiques, IssueBehavior.HALT, IssueBehavior.ESCALATE):
                break
        return critiques

    async def _escalate(self, ctx: StepContext, issues: str) -> StepResult:
        prompt = f"Review step {self.step.id!r} has findings that you must decide on:\n{issues}"
        update = await ask_for_guidance(ctx, "escalate", prompt)
        return await self.leave(ctx, {**update, **self.record(kind="answered"), "escalation": None})


def _critiques(results: Sequence[Any]) -> list[Critique]:
    return [Critique.from_json(each) for each in results]


def _issues_that(critiques: Sequence[Critique], *behaviors: IssueBehavior) -> list[CritiqueIssue]:
    """Returns the issues with a behavior; one that is set aside has no effect."""
    issues = [issue for critique in critiques for issue in critique.issues]
    return [each for each in issues if each.behavior in behaviors and not is_set_aside(each)]


def _format_issues(issues: Sequence[CritiqueIssue]) -> str:
    """Returns issues for a human, each finding once."""
    return "\n".join(
        f"- [{issue.severity}] {issue.id}: {issue.finding}"
        + (f"\n  > {issue.evidence}" if issue.evidence else "")
        for issue in {each.finding_id: each for each in issues}.values()
    )


def _previously_reviewed(state: FlowState) -> str:
    """Returns the version that was reviewed before this one; empty for the first."""
    read = state.raw.get("read")
    if read is None:
        return ""
    return str(read["before"] if read["artifact"] == state.artifact else read["artifact"])
