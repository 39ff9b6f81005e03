"""A whole flow: the settings that its files share, and the value that runs are built from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from signoff.core.spend import Limits
from signoff.documents.mistakes import ADVICE
from signoff.documents.sections import FileSection
from signoff.errors import UnsafePath
from signoff.flows.sections import (
    BEHAVIORS,
    TEXT,
    BehaviorField,
    ConstraintConfig,
    FlowSection,
    GoalField,
    Independence,
    IndependenceField,
    LimitsField,
    Many,
    Word,
)
from signoff.flows.step import StepKind, WorkflowStep
from signoff.review.behaviors import (
    ConstraintBehavior,
    IssueBehavior,
    ResolvedBehavior,
    resolve_behavior,
)
from signoff.review.constraint import Constraint
from signoff.review.critique import Critique
from signoff.review.severity import DEFAULT_BLOCK_ON, Severity
from signoff.runtime.paths import check_path, fold_name
from signoff.store.rundir.files import RESERVED_NAMES

MOST_ITERATIONS = 1000
STATUS = "status.md"
"""The file next to an artifact that was not approved."""

RESERVED = RESERVED_NAMES | {"iterations", "constraints", "critiques", "reviewed", "goal.yaml"}
"""Names in a run's folder that the artifact must not use."""

Trigger = Literal["max_iterations", "thrashing", "conflicting_criticals", "not_converging"]


class OutputConfig(FlowSection):
    """Where the approved artifact goes, inside the run's own folder."""

    dir: str = Field(
        "final",
        max_length=200,
        title="The folder of the artifact",
        description="a relative path inside the run, without .. and hidden folders",
    )
    filename: str = Field(
        "artifact.md",
        max_length=120,
        pattern=r"^[^./\\:\x00-\x1f][^/\\:\x00-\x1f]*$",
        title="The name of the artifact",
        description="a file name, without folders",
    )

    @field_validator("dir")
    @classmethod
    def _stays_inside(cls, value: str) -> str:
        folder = value.replace("\\", "/").removesuffix("/")
        # What the engine refuses to write has to be found before any agent is paid.
        if fold_name(folder.split("/")[0]) in RESERVED:
            raise PydanticCustomError(ADVICE, "that folder of a run is taken; choose another")
        _check_path(folder)
        return folder

    @field_validator("filename")
    @classmethod
    def _is_a_name(cls, value: str) -> str:
        if fold_name(value) == STATUS:
            raise PydanticCustomError(ADVICE, "that file says how the run ended; choose another")
        _check_path(value)
        return value


def _check_path(path: str) -> None:
    try:
        check_path(path)
    except UnsafePath as error:
        raise ValueError(str(error)) from error


def _rounds(title: str) -> Any:
    return Field(None, ge=1, le=1000, title=title, description="a whole number from 1 to 1000")


class ConvergenceConfig(FlowSection):
    """Stop rules next to the iteration limit; a rule without a number is off."""

    plateau: int | None = _rounds("Rounds in a row without fewer findings")
    oscillation: int | None = _rounds("Returns of one finding")
    thrashing: int | None = _rounds("Rounds in a row that pursue one finding")
    only_new: int | None = _rounds("Rounds in a row of new findings only")
    action: Literal["stop", "escalate"] = Field(
        "stop",
        title="Whether the run ends or a human decides",
        description="one of: stop, escalate",
    )


class Tension(FlowSection):
    """Two aims that pull apart, and which way to lean."""

    axis: Word = Field(title="The two aims", description="a text, as in brevity vs completeness")
    guidance: str = Field("", title="Which way to lean", description=TEXT)
    winner_on_conflict: str = Field("", title="Which aim wins", description=TEXT)


@dataclass(frozen=True)
class AdjudicationConfig:
    """What a judge goes by, and when a human is asked.

    Files have two spellings of this, an older and a newer one; `judging_file` merges them.
    """

    block_on: tuple[Severity, ...] = DEFAULT_BLOCK_ON
    triggers: tuple[Trigger, ...] = ()
    thrash_threshold: int = 2
    tensions: tuple[Tension, ...] = ()
    instructions: str = ""


class FlowSettings(FileSection, FlowSection):
    """The keys that a flow file and the flow it describes have in common."""

    name: str = Field(
        "",
        pattern=r"^([A-Za-z0-9][A-Za-z0-9_.-]*)?$",
        max_length=100,
        title="The flow's name",
        description="letters, digits, _, . and -",
    )
    description: str = Field("", title="What the flow is for", description=TEXT)
    goal: GoalField | None = Field(
        None,
        title="What to write, where there is no goal file",
        description="a text, or a mapping with goal and source",
    )
    max_iterations: int = Field(
        3,
        ge=1,
        le=MOST_ITERATIONS,
        title="How many rounds a run may have",
        description=f"a whole number from 1 to {MOST_ITERATIONS}",
    )
    constraints: ConstraintConfig = Field(
        default_factory=ConstraintConfig,
        title="Where the constraints are, and who reviews them",
        description="dir, files, inline or routing",
    )
    output: OutputConfig = Field(
        default_factory=OutputConfig,
        title="Where the approved artifact goes",
        description="dir and filename",
    )
    allow_scripts: bool = Field(
        False, title="Whether scripts of sources may run", description="true or false"
    )
    limits: LimitsField = Field(
        default_factory=Limits,
        title="What a run may cost at most",
        description="usd, tokens, calls or seconds",
    )
    convergence: ConvergenceConfig = Field(
        default_factory=ConvergenceConfig,
        title="Stop rules next to the iteration limit",
        description="plateau, oscillation, thrashing, only_new and action",
    )
    independence: IndependenceField = Field(
        default_factory=lambda: Independence(rule="none"),
        title="Whether critics may share the author's model family",
        description="one of: none, different_family; or a mapping with rule and otherwise",
    )
    default_behavior: BehaviorField = Field(
        default_factory=ConstraintBehavior,
        title="What issues do, by severity",
        description=BEHAVIORS,
    )
    constraint_behaviors: dict[str, BehaviorField] = Field(
        default_factory=dict,
        title="What issues of one constraint do, by its id or a pattern",
        description="behaviors by severity for each constraint id",
    )


class GenflowConfig(FlowSettings):
    """A whole flow."""

    workflow: Many[WorkflowStep]
    adjudication: AdjudicationConfig = AdjudicationConfig()
    agents_of_all: bool = False
    """GenLoop: every routed agent reads every constraint, built-in agents included."""

    from_dict: ClassVar[Callable[[Mapping[str, Any]], GenflowConfig]]
    """Reads a flow as it is in YAML; `signoff.flows.reading`, which can read it, sets this."""

    def behavior(self, constraint: Constraint, severity: Severity) -> ResolvedBehavior:
        """Returns what an issue does, and which level decided it."""
        return resolve_behavior(
            severity,
            constraint.behavior,
            self._flow_behavior(constraint.id, severity),
            self.default_behavior,
        )

    def with_behaviors(self, critique: Critique, constraint: Constraint) -> Critique:
        """Returns a critique with the behavior of each issue."""
        issues = (
            replace(issue, behavior=self.behavior(constraint, issue.severity).behavior.value)
            for issue in critique.issues
        )
        return replace(critique, issues=tuple(issues))

    def ends_on_approval(self, position: int) -> bool:
        """Tells whether an approval by the judge at a position ends the run: the last one's."""
        judge, *later = self.workflow[position:]
        if judge.on_approved is not None:
            return judge.on_approved == "finish"
        return all(step.step is not StepKind.ADJUDICATE for step in later)

    def _flow_behavior(self, constraint: str, severity: Severity) -> ConstraintBehavior | None:
        """Returns the flow's entry for a constraint; its exact id is stronger than a pattern."""
        exact = self.constraint_behaviors.get(constraint)
        if exact is not None and exact.get(severity) is not None:
            return exact
        matching = (
            behavior
            for pattern, behavior in self.constraint_behaviors.items()
            if fnmatchcase(constraint, pattern) and behavior.get(severity) is not None
        )
        return next(matching, None)


def get_behavior_for_severity(
    config: GenflowConfig, constraint: Constraint, severity: Severity | str
) -> IssueBehavior:
    """Returns what an issue of a severity does, whichever of the four levels decides it."""
    return config.behavior(constraint, Severity(str(severity).upper())).behavior
