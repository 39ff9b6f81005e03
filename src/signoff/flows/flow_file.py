"""Flow files: the form with its own list of steps, and the form without one, the fixed loop.

The fixed loop is generate, critique, adjudicate, refine. Every key of it is optional. It is a plain
flow with other defaults: three critics, edits that are checked, and a human who is asked when it
does not converge.

What a judge applies and when a human is asked has two places in both forms, because `termination`
is another one for two of these keys; a file may use either, or both as long as they agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field

from signoff.agents.kinds import PROGRAMS
from signoff.core.requests import AnswerableBy
from signoff.core.severity import DEFAULT_BLOCK_ON, SEVERITIES, IssueBehavior, Severity
from signoff.documents.mistakes import Mistake
from signoff.flows.model import (
    AdjudicationConfig,
    ConvergenceConfig,
    FlowSettings,
    GenflowConfig,
    Mode,
    ModelName,
    StepKind,
    Tension,
    Trigger,
    WorkflowStep,
    with_ids,
)
from signoff.flows.sections import (
    AgentName,
    ConstraintConfig,
    FlowSection,
    Many,
    SeverityName,
    Some,
    Text,
)
from signoff.review.constraint import ConstraintBehavior

VERSION = 1

PolicyName = Literal[
    "no_critical", "no_critical_or_high", "no_critical_and_no_high", "all_resolved"
]
POLICIES: Mapping[PolicyName, tuple[Severity, ...]] = {
    "no_critical": Severity.CRITICAL.or_worse,
    "no_critical_or_high": Severity.HIGH.or_worse,
    "no_critical_and_no_high": Severity.HIGH.or_worse,
    "all_resolved": tuple(Severity),
}
"""Names for the severities that block."""


TRIGGERS = ", ".join(get_args(Trigger))
TriggerName = Annotated[Trigger, Field(description=f"one of: {TRIGGERS}")]
Triggers = Annotated[Many[TriggerName] | None, Field(description=f"a list of: {TRIGGERS}")]
Policy = Annotated[PolicyName | None, Field(description=f"one of: {', '.join(POLICIES)}")]


class ApprovalSection(FlowSection):
    """Which findings keep a text from passing."""

    block_on: Many[SeverityName] | None = Field(None, description=f"a list of: {SEVERITIES}")
    """Severities that block."""
    policy: Policy = None
    """The same by a name."""


class EscalationSection(FlowSection):
    """When a human is asked."""

    triggers: Triggers = None
    """What makes a human decide."""
    thrash_threshold: int = Field(2, ge=1, le=10, description="a whole number from 1 to 10")
    """After how many repetitions an issue to fix counts as thrashing."""
    answerable_by: Literal["human", "agent"] = Field("human", description="human or agent")
    """Who may answer open questions about findings."""


class AdjudicationSection(FlowSection):
    """What a judge applies."""

    approval: ApprovalSection = Field(default_factory=ApprovalSection.model_construct)
    """Which findings keep a text from passing."""
    escalation: EscalationSection = Field(default_factory=EscalationSection.model_construct)
    """When a human is asked."""
    tensions: Many[Tension] = Field(
        (), description="a list of {axis, guidance, winner_on_conflict}"
    )
    """Goals that conflict."""
    instructions: Text | None = Field(None, description="a text")
    """Further instructions for the judge."""


class TerminationSection(FlowSection):
    """Other names for `adjudication.approval.policy` and `adjudication.escalation.triggers`."""

    approve_when: Policy = None
    """Which findings keep a text from passing."""
    escalate_on: Triggers = None
    """What makes a human decide."""


KeyPath = tuple[str, ...]


def _disagreements(lists: Mapping[KeyPath, tuple[Any, ...]]) -> Iterator[Mistake]:
    texts = {
        path: f"{'.'.join(path)} is {', '.join(map(str, values)) or 'empty'}"
        for path, values in lists.items()
    }
    first, *others = lists or [()]
    for path in others:
        if set(lists[path]) != set(lists[first]):
            yield Mistake(path, f"{texts[path]}, but {texts[first]}", "keep one of them")


class AnyFlowFile(FlowSettings):
    """The keys that flow files have with and without a `workflow:`."""

    version: Literal[1] = Field(1, description="1")
    """The version of the file format."""
    notation: Literal["flows"] = Field("flows", description="flows")
    """The notation of this file."""
    adjudication: AdjudicationSection = Field(default_factory=AdjudicationSection.model_construct)
    """What a judge applies."""
    termination: TerminationSection = Field(default_factory=TerminationSection.model_construct)
    """Other names for what keeps a text from passing and when a human is asked."""

    @property
    def triggers(self) -> tuple[Trigger, ...] | None:
        """What makes a human decide; None if the file does not say."""
        return next(iter(self._triggers().values()), None)

    def disagreements(self) -> list[Mistake]:
        """Returns where two keys about judging contradict each other."""
        return [*_disagreements(self._block_on()), *_disagreements(self._triggers())]

    def judging(self, default_triggers: tuple[Trigger, ...]) -> AdjudicationConfig:
        """Returns what a judge applies."""
        return AdjudicationConfig(
            next(iter(self._block_on().values()), DEFAULT_BLOCK_ON),
            # An empty list is a decision as well: the author wants no human to be asked.
            default_triggers if self.triggers is None else self.triggers,
            self.adjudication.escalation.thrash_threshold,
            self.adjudication.tensions,
            self.adjudication.instructions or "",
            AnswerableBy(self.adjudication.escalation.answerable_by),
        )

    def shared(self) -> dict[str, Any]:
        """Returns the settings that the file has in common with the flow it describes."""
        return {name: getattr(self, name) for name in FlowSettings.model_fields}

    def _block_on(self) -> dict[KeyPath, tuple[Severity, ...]]:
        """Returns the severities that block by each key that names some."""
        approval, approve_when = self.adjudication.approval, self.termination.approve_when
        named = {
            ("adjudication", "approval", "block_on"): approval.block_on,
            ("adjudication", "approval", "policy"): approval.policy and POLICIES[approval.policy],
            ("termination", "approve_when"): approve_when and POLICIES[approve_when],
        }
        # The order of a list in a file means nothing, and is part of what identifies requests.
        return {
            path: tuple(each for each in Severity if each in severities)
            for path, severities in named.items()
            if severities is not None
        }

    def _triggers(self) -> dict[KeyPath, tuple[Trigger, ...]]:
        """Returns what makes a human decide by each key that names something."""
        named = {
            ("adjudication", "escalation", "triggers"): self.adjudication.escalation.triggers,
            ("termination", "escalate_on"): self.termination.escalate_on,
        }
        return {
            path: tuple(dict.fromkeys(names)) for path, names in named.items() if names is not None
        }


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
            adjudication=self.judging(()),
        )


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

    pattern: Literal["parallel", "sequential"] = "parallel"
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

    generate: PhaseSection = Field(default_factory=PhaseSection.model_construct)
    """Writes the artifact."""
    critique: CritiquePhaseSection = Field(default_factory=CritiquePhaseSection.model_construct)
    """Reviews the artifact."""
    adjudicate: PhaseSection = Field(default_factory=PhaseSection.model_construct)
    """Decides about the findings."""
    refine: RefinePhaseSection = Field(default_factory=RefinePhaseSection.model_construct)
    """Fixes the artifact."""


class GenloopFile(AnyFlowFile):
    """The fixed loop: generate, critique, adjudicate, refine."""

    max_iterations: int = Field(3, ge=1, le=20, description="a whole number from 1 to 20")
    """How many rounds a run may have."""
    phases: PhasesSection = Field(default_factory=PhasesSection.model_construct)
    """The agent and the options of each phase."""

    def config(self) -> GenflowConfig:
        """Returns the loop as a flow."""
        # What the file says about one severity leaves the others as the loop has them.
        own = self.default_behavior.by_severity
        return GenflowConfig.model_construct(
            **{
                **self.shared(),
                "default_behavior": ConstraintBehavior({**KEEP_ALL.by_severity, **own}),
                "constraints": self._routed(),
                "convergence": self._convergence(),
            },
            workflow=with_ids(self._steps()),
            adjudication=self.judging(DEFAULT_TRIGGERS),
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
        if self.triggers is not None:
            return ConvergenceConfig()
        plateau = self.adjudication.escalation.thrash_threshold + 2
        return ConvergenceConfig(plateau=plateau, oscillation=2, only_new=4, action="escalate")

    def _routed(self) -> ConstraintConfig:
        routing = self.constraints.routing
        agents = routing.default_agents or tuple(PROGRAMS)
        routed = routing.model_copy(update={"default_agents": agents})
        return self.constraints.model_copy(update={"routing": routed})
