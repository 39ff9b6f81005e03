"""What the handlers of all kinds of step share: each of them performs one step of a flow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from signoff.core.amounts import count
from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.review.flow.coverage import file_coverage
from signoff.review.flow.model import Flow, StepKind, WorkflowStep
from signoff.review.flow.state import FlowState, after, at_limit_reason
from signoff.review.pure.coverage import describe_missed

StepResult = tuple[Outcome, dict[str, Any]]
"""What a handler returns: its outcome, and the update of the run's state."""
REASON = "_reason"
"""The key under which the engine looks for the reason, in case the run ends here."""


@dataclass(frozen=True)
class FlowHandler(ABC):
    """The handler of one step of a flow."""

    flow: Flow
    step: WorkflowStep

    @property
    def definition(self) -> list[Any]:
        """What a run's digest covers of the handler; the flow itself is stored with the run."""
        # The number is the version of the handlers' behavior. A change of it would make every
        # run under way ask its user to adopt a changed definition.
        return ["flows", self.step.step.value, 1]

    async def __call__(self, ctx: StepContext) -> StepResult:
        """Performs the step, and says what an end of the run here would have missed."""
        outcome, update = await self.perform(ctx)
        ends = outcome is Outcome.OK and self.flow.ends_with(self.step)
        missed = file_coverage(ctx.step_state.get("skipped") or {}).missed if ends else ()
        if missed:
            # What passed is the result all the same; only the run must not look complete.
            return Outcome.SKIP, {**update, REASON: "; ".join(describe_missed(missed))}
        return outcome, {**update, **self._question_at_limit(ctx, outcome, update)}

    @abstractmethod
    async def perform(self, ctx: StepContext) -> StepResult:
        """Does the work of the step."""

    @property
    def agent(self) -> str:
        """The agent of the step."""
        return self.flow.agent(self.step)

    @property
    def call_options(self) -> dict[str, Any]:
        """The options of every call that the step makes."""
        return {"model": self.step.model, "timeout": self.step.timeout}

    def record(self, **fields: Any) -> dict[str, Any]:
        """Returns the update about the step itself: what it did, and where the flow goes next."""
        # The names of these keys are part of the run directory and of recorded journals.
        entry = {"kind": self.step.step.value, "step": self.step.id, **fields}
        return {"step_index": self.flow.leads_to(self.step), "step": entry}

    def artifact_path(self, stem: str, iteration: int) -> str:
        """Returns where the run directory shows the artifact of this step."""
        # Scripts of users read `artifact.md` of a round, so the first step of a kind keeps that
        # name and only further ones add their own.
        first = self.flow.of_kind(self.step.step)[0]
        suffix = "" if self.step.id == first.id else f"_{self.step.id}"
        return f"iterations/{iteration}/{stem}{suffix}.md"

    def _question_at_limit(
        self, ctx: StepContext, outcome: Outcome, update: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Returns the reason for the end, or for the question, if there may be no more rounds.

        The engine uses it only then; how many rounds there may be is not known here.
        """
        # Only leaving a step towards another round can meet the limit. A pass or an end cannot, and
        # its reason must stay the step's own.
        not_passed = Outcome.ITERATE if self.step.step is StepKind.ADJUDICATE else Outcome.OK
        if outcome is not not_passed or not self.flow.starts_round(self.step):
            return {}
        state = FlowState(after(ctx.step_state, update))
        asks = "max_iterations" in self.flow.config.adjudication.triggers
        unchanged = state.unchanged
        if not (asks or unchanged):
            # The engine's own words say as much.
            return {}
        why = update.get("_reason") or f"{count(ctx.iteration, 'round')} without passing"
        if unchanged:
            why = f"{why}; the last fix changed nothing"
        block_on = self.flow.config.adjudication.block_on
        return {"_reason": at_limit_reason(str(why), state, block_on) if asks else why}
