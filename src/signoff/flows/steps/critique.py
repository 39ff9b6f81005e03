"""Reviews the artifact: one review for each constraint and each of its critics.

Parallel critics all finish, and only then do the behaviors of their findings apply. Serial
critics work one constraint after the other, and a finding that halts or escalates skips the
remaining ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.flows.state import FlowState, after
from signoff.flows.step import StepKind
from signoff.flows.steps.handler import FlowHandler, StepResult
from signoff.flows.steps.reading import Reading, issues_that
from signoff.flows.steps.updates import ask_for_guidance, decided_by_human, with_best
from signoff.light_dataclass import light_dataclass
from signoff.review.behaviors import IssueBehavior
from signoff.review.critique import Critique, CritiqueIssue
from signoff.review.findings import Ledger
from signoff.runtime.amounts import count


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
        reading = Reading(self.flow, self.step, state)
        due = reading.due()
        skipped = sum(map(len, reading.items())) - sum(map(len, due))
        if skipped:
            ctx.progress(f"{count(skipped, 'review')} not repeated: nothing they cited has changed")
        update, critiques = reading.update(ctx, await reading.read(ctx, due))
        update |= {
            "unadjudicated_critiques": [
                *state.unadjudicated,
                *update["critiques_by_step"][self.step.id],
            ],
            "last_critique_step": self.step.id,
            **self.record(halted=bool(issues_that(critiques, IssueBehavior.HALT))),
        }
        if not self.flow.of_kind(StepKind.ADJUDICATE):
            update |= with_best(ctx, after(ctx.step_state, update))
        if escalated := _undecided(critiques, update):
            index = self.flow.index(self.step)
            update |= {
                "escalation": _format_issues(escalated),
                "escalated": list(dict.fromkeys(issue.finding_id for issue in escalated)),
                "step_index": index,
            }
            return Outcome.ITERATE, update
        return Outcome.OK, update

    async def _escalate(self, ctx: StepContext, issues: str) -> StepResult:
        prompt = f"Review step {self.step.id!r} has findings that you must decide on:\n{issues}"
        update = await ask_for_guidance(ctx, "escalate", prompt)
        state = FlowState(ctx.step_state)
        update |= decided_by_human(state, ctx.step_state.get("escalated", ()), update)
        return Outcome.OK, {**update, **self.record(kind="answered"), "escalation": None}


def _undecided(critiques: Sequence[Critique], update: Mapping[str, Any]) -> list[CritiqueIssue]:
    """Returns the issues that a human must decide about, without those that one has decided."""
    findings = Ledger.from_json(update["findings"]).findings
    escalated = issues_that(critiques, IssueBehavior.ESCALATE)
    return [issue for issue in escalated if not findings[issue.finding_id].decision]


def _format_issues(issues: Sequence[CritiqueIssue]) -> str:
    """Returns issues for a human, each finding once."""
    return "\n".join(
        f"- [{issue.severity}] {issue.id}: {issue.finding}"
        + (f"\n  > {issue.evidence}" if issue.evidence else "")
        for issue in {each.finding_id: each for each in issues}.values()
    )
