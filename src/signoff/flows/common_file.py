"""The keys that flow files of both forms have: those with a `workflow:` and those without."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from signoff.core.spend import Limits
from signoff.documents.mistakes import ADVICE
from signoff.documents.sections import FileSection, LimitsSection, Section
from signoff.errors import UnsafePath
from signoff.flows.judging_file import AdjudicationSection, Judging, TerminationSection
from signoff.flows.model import (
    DEFAULT_MAX_ITERATIONS,
    ConvergenceConfig,
    Goal,
    Independence,
    OutputConfig,
)
from signoff.flows.routing_file import ConstraintsSection
from signoff.flows.sections import (
    BehaviorSection,
    GoalField,
    GoalSection,
    IndependenceField,
    IndependenceSection,
)
from signoff.runtime.paths import check_path, fold_name
from signoff.store.rundir.files import RESERVED_NAMES

VERSION = 1

STATUS = "status.md"
"""Beside the artifact, where it was not approved."""

ROUNDS = "a whole number from 1 to 1000"
RESERVED = RESERVED_NAMES | {"iterations", "constraints", "critiques", "reviewed", "goal.yaml"}
"""Names in a run's folder that the artifact must not be put under."""


class OutputSection(Section):
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
        place = value.replace("\\", "/").removesuffix("/")
        # What the engine will not write is refused before anybody is paid for it.
        if fold_name(place.split("/")[0]) in RESERVED:
            raise PydanticCustomError(ADVICE, "that folder of a run is taken; choose another")
        _check_path(place)
        return place

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


class ConvergenceSection(Section):
    """Stop rules beside the iteration limit; a rule that is not named does not hold."""

    plateau: int | None = Field(
        None, ge=1, le=1000, title="Rounds in a row without fewer findings", description=ROUNDS
    )
    oscillation: int | None = Field(
        None, ge=1, le=1000, title="Returns of one finding", description=ROUNDS
    )
    thrashing: int | None = Field(
        None, ge=1, le=1000, title="Rounds in a row that pursue one finding", description=ROUNDS
    )
    only_new: int | None = Field(
        None, ge=1, le=1000, title="Rounds in a row of new findings only", description=ROUNDS
    )
    action: Literal["stop", "escalate"] = Field(
        "stop",
        title="Whether the run ends or a person decides",
        description="one of: stop, escalate",
    )


class CommonFile(FileSection):
    """What every flow file may say."""

    version: Literal[1] = Field(1, title="The form of this file", description="1")
    notation: Literal["flows"] = Field(
        "flows", title="The notation of this file", description="flows"
    )
    name: str = Field(
        "",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$",
        max_length=100,
        title="The flow's name",
        description="letters, digits, _, . and -",
    )
    description: str = Field("", title="What the flow is for", description="a text")
    goal: GoalField | None = Field(
        None,
        title="What is to be made, where no goal file is given",
        description="a text, or a mapping with goal and source",
    )
    max_iterations: int = Field(
        DEFAULT_MAX_ITERATIONS,
        ge=1,
        le=1000,
        title="How many rounds a run may have",
        description="a whole number from 1 to 1000",
    )
    constraints: ConstraintsSection = Field(
        default_factory=ConstraintsSection,
        title="Where the constraints are, and who reviews them",
        description="dir, files, inline or routing",
    )
    adjudication: AdjudicationSection = Field(
        default_factory=AdjudicationSection,
        title="What a judge goes by",
        description="approval, escalation, tensions or instructions",
    )
    termination: TerminationSection = Field(
        default_factory=TerminationSection,
        title="Older words for approval and escalation",
        description="approve_when or escalate_on",
    )
    output: OutputSection = Field(
        default_factory=OutputSection,
        title="Where the approved artifact goes",
        description="dir and filename",
    )
    allow_scripts: bool = Field(
        False, title="Whether scripts of sources may run", description="true or false"
    )
    limits: LimitsSection = Field(
        default_factory=LimitsSection,
        title="What a run may cost at most",
        description="usd, tokens, calls or seconds",
    )
    convergence: ConvergenceSection = Field(
        default_factory=ConvergenceSection,
        title="Stop rules beside the iteration limit",
        description="plateau, oscillation, thrashing, only_new and action",
    )
    independence: IndependenceField | None = Field(
        None,
        title="Whether critics may share the author's model family",
        description="one of: none, different_family; or a mapping with rule and otherwise",
    )
    default_behavior: BehaviorSection = Field(
        default_factory=BehaviorSection,
        title="What issues do, by severity",
        description="behaviours by severity, as in {critical: halt, low: ignore}",
    )
    constraint_behaviors: dict[str, BehaviorSection] = Field(
        default_factory=dict,
        title="What issues of one constraint do, by its id or a pattern",
        description="behaviours by severity for each constraint id",
    )

    def judging(self) -> Judging:
        """Returns what is said about judging, in newer and older words."""
        return Judging(self.adjudication, self.termination)

    def shared(self) -> dict[str, Any]:
        """Returns the fields of a config that both forms of file have."""
        return {
            "max_iterations": self.max_iterations,
            "name": self.name,
            "description": self.description,
            "goal": _goal(self.goal),
            "constraints": self.constraints.value(),
            "output": OutputConfig(self.output.dir, self.output.filename),
            "allow_scripts": self.allow_scripts,
            "limits": Limits(**self.limits.model_dump()),
            "convergence": ConvergenceConfig(**self.convergence.model_dump()),
            "independence": _independence(self.independence),
            "constraint_behaviors": {
                pattern: said.behavior() for pattern, said in self.constraint_behaviors.items()
            },
        }


def _goal(said: str | GoalSection | None) -> Goal | None:
    return Goal(said) if isinstance(said, str) else said.value() if said else None


def _independence(said: str | IndependenceSection | None) -> Independence:
    if said is None:
        return Independence()
    if isinstance(said, IndependenceSection):
        return Independence(said.rule, said.otherwise)
    return Independence("different_family" if said == "different_family" else "none")
