"""What the handlers of all four kinds of step share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from signoff.core.outcome import Outcome
from signoff.flows.flow import Flow
from signoff.flows.step import WorkflowStep

StepResult = tuple[Outcome, dict[str, Any]]
"""What a handler returns: its outcome, and the update of the run's state."""


@dataclass(frozen=True)
class FlowHandler:
    """The handler of one step of a flow."""

    flow: Flow
    step: WorkflowStep

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
        entry = {"kind": self.step.step.value, "step": self.step.id, **fields}
        return {"step_index": self.flow.leads_to(self.step), "step": entry}

    def artifact_path(self, stem: str, iteration: int) -> str:
        """Returns where the run directory shows the artifact of this step."""
        first = self.flow.of_kind(self.step.step)[0]
        suffix = "" if self.step.id == first.id else f"_{self.step.id}"
        return f"iterations/{iteration}/{stem}{suffix}.md"
