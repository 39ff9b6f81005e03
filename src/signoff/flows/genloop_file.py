"""A flow file without a list of steps: the fixed loop generate, critique, adjudicate, refine.

Every key is optional. The loop is a plain flow with other defaults: three critics, edits
that are checked, and a human who is asked when it does not converge.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from signoff.agents.kinds import PROGRAMS
from signoff.core.severity import IssueBehavior, Severity
from signoff.flows.flow_file import AnyFlowFile
from signoff.flows.model import ConvergenceConfig, GenflowConfig, Trigger
from signoff.flows.sections import AgentName, ConstraintConfig, FlowSection
from signoff.flows.step import Mode, ModelName, StepKind, WorkflowStep, with_ids
from signoff.review.constraint import ConstraintBehavior

DEFAULT_TRIGGERS: tuple[Trigger, ...] = ("max_iterations", "thrashing", "conflicting_criticals")
KEEP_ALL = ConstraintBehavior(dict.fromkeys(Severity, IssueBehavior.CONTINUE))
"""The loop has approval policies instead of behaviors: every issue reaches the judge."""


class PhaseSection(FlowSection):
    """The agent of a phase."""

    agent: AgentName | None = Field(None, description="an agent's name")
    """The agent; without one, the default agent."""
    model: ModelName = None
    """The model that the agent uses."""


class CritiquePhaseSection(FlowSection):
    """How the critics work."""

    pattern: Literal["parallel", "sequential"] = Field(
        "parallel", description="one of: parallel, sequential"
    )
    """All at once, or one after the other."""


class RefinePhaseSection(PhaseSection):
    """How the artifact is fixed, and how an edit is checked."""

    mode: Mode = "edit"
    """Edits a file, writes the whole text again, or applies literal edits first."""
    validation_retries: int = Field(2, ge=0, le=10, description="a whole number from 0 to 10")
    """How often an edit that changed nothing, or too much, is sent back."""
    max_size_change_pct: float = Field(
        20.0, gt=0, allow_inf_nan=False, description="a percentage above 0"
    )
    """By how much an edit may change the number of words."""


class PhasesSection(FlowSection):
    """The four phases."""

    generate: PhaseSection = Field(
        default_factory=PhaseSection.model_construct, description="agent and model"
    )
    """Writes the artifact."""
    critique: CritiquePhaseSection = Field(
        default_factory=CritiquePhaseSection.model_construct, description="pattern"
    )
    """Reviews the artifact."""
    adjudicate: PhaseSection = Field(
        default_factory=PhaseSection.model_construct, description="agent and model"
    )
    """Decides about the findings."""
    refine: RefinePhaseSection = Field(
        default_factory=RefinePhaseSection.model_construct,
        description="agent, model, mode, validation_retries and max_size_change_pct",
    )
    """Fixes the artifact."""


class GenloopFile(AnyFlowFile):
    """The fixed loop: generate, critique, adjudicate, refine."""

    max_iterations: int = Field(3, ge=1, le=20, description="a whole number from 1 to 20")
    """How many rounds a run may have."""
    phases: PhasesSection = Field(
        default_factory=PhasesSection.model_construct,
        description="generate, critique, adjudicate or refine",
    )
    """The agent and the options of each phase."""

    def config(self) -> GenflowConfig:
        """Returns the loop as a flow."""
        own = self.default_behavior.by_severity
        return GenflowConfig.model_construct(
            **{
                **self.shared(),
                "default_behavior": ConstraintBehavior({**KEEP_ALL.by_severity, **own}),
                "constraints": self._routed(),
                "convergence": self._convergence(),
            },
            workflow=with_ids(self._steps()),
            adjudication=self.judging().config(DEFAULT_TRIGGERS),
        )

    def _steps(self) -> tuple[WorkflowStep, ...]:
        phases = self.phases
        serial = phases.critique.pattern == "sequential"
        return (
            WorkflowStep(step=StepKind.GENERATE, **dict(phases.generate)),
            WorkflowStep(step=StepKind.CRITIQUE, execution="serial" if serial else "parallel"),
            WorkflowStep(step=StepKind.ADJUDICATE, **dict(phases.adjudicate)),
            WorkflowStep(
                step=StepKind.REFINE,
                on_invalid="escalate",
                loop_to=StepKind.CRITIQUE.value,
                **dict(phases.refine),
            ),
        )

    def _convergence(self) -> ConvergenceConfig:
        """Asks a human when the loop does not converge, unless the file has its own rules.

        Each number is larger than what the thrashing trigger needs, which should fire first.
        """
        if "convergence" in self.model_fields_set:
            return self.convergence
        if self.judging().triggers is not None:
            return ConvergenceConfig()
        plateau = self.adjudication.escalation.thrash_threshold + 2
        return ConvergenceConfig(plateau=plateau, oscillation=2, only_new=4, action="escalate")

    def _routed(self) -> ConstraintConfig:
        routing = self.constraints.routing
        agents = routing.default_agents or tuple(PROGRAMS)
        routed = routing.model_copy(update={"default_agents": agents})
        return self.constraints.model_copy(update={"routing": routed})
