"""Reviews the artifact: one review for each constraint and each of its critics.

Parallel critics all finish, and only then do the behaviors of their findings apply. Serial
critics work one constraint after the other, and a finding that halts or escalates skips the
remaining ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.core.severity import IssueBehavior
from signoff.flows.state import FlowState, after
from signoff.flows.step import StepKind
from signoff.flows.steps.decision_material import findings_material
from signoff.flows.steps.handler import FlowHandler, StepResult
from signoff.flows.steps.reading import Reading, format_issues, issues_that, undecided
from signoff.flows.steps.updates import ask_for_guidance, decided_by_human, with_best
from signoff.review.findings import Ledger
from signoff.runtime.amounts import count


@dataclass(frozen=True)
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
        skipped = reading.skipped(due)
        if skipped:
            reviews = count(len(skipped), "review")
            who = "they" if len(skipped) > 1 else "it"
            ctx.progress(f"{reviews} not repeated: nothing {who} cited has changed")
        update, critiques = reading.update(ctx, await reading.read(ctx, due))
        if self.flow.config.rereview == "changed":
            names = sorted(set(skipped))
            update["not_repeated"] = {**state.not_repeated, self.step.id: names}
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
        if escalated := undecided(critiques, Ledger.from_json(update["findings"])):
            update |= {
                "escalation": format_issues(escalated),
                "escalated": [issue.finding_id for issue in escalated],
                "step_index": self.flow.index(self.step),
            }
            return Outcome.ITERATE, update
        return Outcome.OK, update

    async def _escalate(self, ctx: StepContext, issues: str) -> StepResult:
        prompt = f"Review step {self.step.id!r} has findings that you must decide on:\n{issues}"
        state = FlowState(ctx.step_state)
        known = state.ledger.findings
        findings = [known[each] for each in ctx.step_state.get("escalated", ()) if each in known]
        shown = findings_material(self.flow, state, findings)
        update = await ask_for_guidance(ctx, self.flow, "escalate", prompt, shown)
        update |= decided_by_human(state, ctx.step_state.get("escalated", ()), update)
        return Outcome.OK, {**update, **self.record(kind="answered"), "escalation": None}
