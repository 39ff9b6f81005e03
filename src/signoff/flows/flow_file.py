"""Flow files: the keys of both forms, and the form with its own list of steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from signoff.flows.judging_file import AdjudicationSection, Judging, TerminationSection
from signoff.flows.model import FlowSettings, GenflowConfig
from signoff.flows.sections import Some
from signoff.flows.step import WorkflowStep, with_ids

VERSION = 1


class AnyFlowFile(FlowSettings):
    """The keys that flow files have with and without a `workflow:`."""

    version: Literal[1] = Field(1, description="1")
    """The version of the file format."""
    notation: Literal["flows"] = Field("flows", description="flows")
    """The notation of this file."""
    adjudication: AdjudicationSection = Field(
        default_factory=AdjudicationSection.model_construct,
        description="approval, escalation, tensions or instructions",
    )
    """What a judge applies."""
    termination: TerminationSection = Field(
        default_factory=TerminationSection.model_construct,
        description="approve_when or escalate_on",
    )
    """Other names for what keeps a text from passing and when a human is asked."""

    def judging(self) -> Judging:
        """Returns what the two places for keys about judging mean together."""
        return Judging(self.adjudication, self.termination)

    def shared(self) -> dict[str, Any]:
        """Returns the settings that the file has in common with the flow it describes."""
        return {name: getattr(self, name) for name in FlowSettings.model_fields}


class FlowFile(AnyFlowFile):
    """A review flow: steps that generate, critique, adjudicate and refine."""

    misplaced_keys: ClassVar[Mapping[str, str]] = {
        "phases": "only files without `workflow` have it"
    }

    workflow: Some[
        Annotated[
            WorkflowStep,
            Field(description="a mapping with step: generate, critique, adjudicate or refine"),
        ]
    ] = Field(
        description="a list of steps, each with step: generate, critique, adjudicate or refine"
    )
    """The steps, in order."""

    def config(self) -> GenflowConfig:
        """Returns the flow that the file describes."""
        return GenflowConfig.model_construct(
            **self.shared(),
            workflow=with_ids(self.workflow),
            adjudication=self.judging().config(()),
        )
