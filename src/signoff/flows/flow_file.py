"""A flow file with its own list of steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from signoff.flows.common_file import CommonFile
from signoff.flows.model import GenflowConfig
from signoff.flows.step_file import Step, step_value, with_ids


class FlowFile(CommonFile):
    """A review flow: steps that generate, critique, adjudicate and refine."""

    misplaced_keys: ClassVar[Mapping[str, str]] = {
        "phases": "only files without `workflow` have it",
    }

    workflow: list[Step] = Field(
        min_length=1,
        title="The steps, in order",
        description="a list of steps, each with step: generate, critique, adjudicate or refine",
    )

    def config(self) -> GenflowConfig:
        """Returns the flow as a value."""
        return GenflowConfig(
            workflow=with_ids(step_value(step) for step in self.workflow),
            default_behavior=self.default_behavior.behavior(),
            adjudication=self.judging().value(()),
            **self.shared(),
        )
