"""A flow file without a list of steps: the fixed loop generate, critique, adjudicate, refine.

Every key is optional. What the loop does beyond a plain flow is only configuration: a
trio of critics, edits that are checked, and a person who is asked when it gets nowhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from pydantic import Field

from signoff.agents.kinds import DEFAULT_AGENT, PROGRAMS
from signoff.documents.sections import Section
from signoff.flows.common_file import CommonFile
from signoff.flows.model import (
    DEFAULT_MAX_ITERATIONS,
    ConstraintConfig,
    ConvergenceConfig,
    GenflowConfig,
    StepKind,
    Trigger,
    WorkflowStep,
)
from signoff.flows.sections import AgentName, Word
from signoff.flows.step_file import with_ids
from signoff.review.behaviors import ConstraintBehavior, IssueBehavior
from signoff.review.severity import Severity

DEFAULT_TRIGGERS: tuple[Trigger, ...] = ("max_iterations", "thrashing", "conflicting_criticals")
KEEP_ALL = ConstraintBehavior(dict.fromkeys(Severity, IssueBehavior.CONTINUE))
"""The loop has approval policies in place of behaviours: every issue reaches the judge."""


class PhaseSection(Section):
    """Who works a phase."""

    agent: AgentName = Field(DEFAULT_AGENT, title="Who does it", description="an agent's name")
    model: Word | None = Field(
        None, title="The model that agent uses", description="a model's name"
    )


class CritiquePhaseSection(Section):
    """How the critics work."""

    pattern: Literal["parallel", "sequential"] = Field(
        "parallel",
        title="All at once, or one after the other",
        description="one of: parallel, sequential",
    )


class RefinePhaseSection(PhaseSection):
    """How the artifact is mended, and how an edit is checked."""

    mode: Literal["edit", "rewrite", "apply"] = Field(
        "edit",
        title="Edits a file, writes the whole anew, or applies literal edits first",
        description="one of: edit, rewrite, apply",
    )
    validation_retries: int = Field(
        2,
        ge=0,
        le=10,
        title="How often an edit that changed nothing, or too much, is sent back",
        description="a whole number from 0 to 10",
    )
    max_size_change_pct: float = Field(
        20.0,
        gt=0,
        allow_inf_nan=False,
        title="By how much an edit may change the number of words",
        description="a percentage above 0",
    )


class PhasesSection(Section):
    """The four phases."""

    generate: PhaseSection = Field(
        default_factory=PhaseSection, title="Makes the artifact", description="agent and model"
    )
    critique: CritiquePhaseSection = Field(
        default_factory=CritiquePhaseSection,
        title="Reviews the artifact",
        description="pattern",
    )
    adjudicate: PhaseSection = Field(
        default_factory=PhaseSection,
        title="Decides about what was found",
        description="agent and model",
    )
    refine: RefinePhaseSection = Field(
        default_factory=RefinePhaseSection,
        title="Mends the artifact",
        description="agent, model, mode, validation_retries and max_size_change_pct",
    )


class GenloopFile(CommonFile):
    """The fixed loop: generate, critique, adjudicate, refine."""

    max_iterations: int = Field(
        DEFAULT_MAX_ITERATIONS,
        ge=1,
        le=20,
        title="How many rounds a run may have",
        description="a whole number from 1 to 20",
    )
    phases: PhasesSection = Field(
        default_factory=PhasesSection,
        title="Who works each phase, and how",
        description="generate, critique, adjudicate or refine",
    )

    def config(self) -> GenflowConfig:
        """Returns the loop as a flow."""
        shared = self.shared()
        return GenflowConfig(
            workflow=with_ids(self._steps()),
            default_behavior=self._behavior(),
            adjudication=self.judging().value(DEFAULT_TRIGGERS),
            agents_of_all=True,
            **{
                **shared,
                "constraints": _routed(shared["constraints"]),
                "convergence": self._convergence(),
            },
        )

    def _steps(self) -> tuple[WorkflowStep, ...]:
        phases = self.phases
        generate, adjudicate, refine = phases.generate, phases.adjudicate, phases.refine
        return (
            WorkflowStep(StepKind.GENERATE, agent=generate.agent, model=generate.model),
            WorkflowStep(
                StepKind.CRITIQUE,
                execution="parallel" if phases.critique.pattern == "parallel" else "serial",
            ),
            WorkflowStep(StepKind.ADJUDICATE, agent=adjudicate.agent, model=adjudicate.model),
            WorkflowStep(
                StepKind.REFINE,
                agent=refine.agent,
                model=refine.model,
                mode=refine.mode,
                validation_retries=refine.validation_retries,
                max_size_change_pct=refine.max_size_change_pct,
                on_invalid="escalate",
                loop_to=StepKind.CRITIQUE.value,
            ),
        )

    def _behavior(self) -> ConstraintBehavior:
        said = self.default_behavior.behavior().by_severity
        return ConstraintBehavior({**KEEP_ALL.by_severity, **said})

    def _convergence(self) -> ConvergenceConfig:
        """Asks a person when rounds get nowhere, unless the file says itself what asks one.

        Each number is past the point where thrashing has been told.
        """
        if "convergence" in self.model_fields_set:
            return ConvergenceConfig(**self.convergence.model_dump())
        if self.judging().triggers() is not None:
            return ConvergenceConfig()
        plateau = self.adjudication.escalation.thrash_threshold + 2
        return ConvergenceConfig(plateau=plateau, oscillation=2, only_new=4, action="escalate")


def _routed(constraints: ConstraintConfig) -> ConstraintConfig:
    routing = constraints.routing
    agents = routing.default_agents or tuple(PROGRAMS)
    return replace(constraints, routing=replace(routing, default_agents=agents))
