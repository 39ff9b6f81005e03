"""The parts that flow, constraint and goal files share.

Each class is both the model that reads a part of a file and the value the rest of the
package works with. Where a value belongs to a lower layer, a validator builds it from
the section that describes its form in files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from signoff.core.spend import Limits
from signoff.documents.mistakes import ADVICE
from signoff.documents.sections import LimitsSection, Section
from signoff.review.behaviors import ConstraintBehavior
from signoff.review.constraint import SourceBlock

T = TypeVar("T")


def _not_empty(values: tuple[T, ...]) -> tuple[T, ...]:
    if not values:
        raise ValueError(values)
    return values


Many = Annotated[tuple[T, ...], Strict(False)]
"""A list in files. Strict mode would only take a tuple, which YAML does not have."""
Some = Annotated[
    tuple[T, ...],
    Strict(False),
    # `min_length` would also report a list whose only value is wrong as too short.
    AfterValidator(_not_empty),
    Field(json_schema_extra={"minItems": 1}),
]
"""A list in files with at least one value."""
Word = Annotated[str, Field(min_length=1, pattern=r"\S", description="a text that is not empty")]
AgentName = Annotated[str, Field(min_length=1, pattern=r"\S", description="an agent's name")]
AGENTS = 'a list of agents, as in ["claude", "codex"]'
Agents = Some[AgentName]
Behavior = Literal["halt", "continue", "escalate", "ignore"]

TEXT = "a text"
PATHS = "a list of paths"
BEHAVIOR = "one of: halt, continue, escalate, ignore"
BEHAVIORS = "behaviors by severity, as in {critical: halt, low: ignore}"
SOURCES = "files, globs, scripts or inline"


class FlowSection(Section):
    """A part of a file that is also a value: it never changes, and types are not converted."""

    model_config = ConfigDict(frozen=True, strict=True)


class SourceSection(FlowSection):
    """Material to work from."""

    files: Many[Word] = Field((), title="Files to read", description=PATHS)
    globs: Many[Word] = Field(
        (), title="Patterns of files to read", description="a list of patterns"
    )
    scripts: Many[Word] = Field(
        (),
        title="Programs whose output is read, where scripts are allowed",
        description="a list of commands",
    )
    inline: str = Field("", title="The material itself", description=TEXT)


class BehaviorSection(FlowSection):
    """What issues do, by severity; a missing severity is left to weaker levels."""

    critical: Behavior | None = Field(None, title="CRITICAL issues", description=BEHAVIOR)
    high: Behavior | None = Field(None, title="HIGH issues", description=BEHAVIOR)
    medium: Behavior | None = Field(None, title="MEDIUM issues", description=BEHAVIOR)
    low: Behavior | None = Field(None, title="LOW issues", description=BEHAVIOR)

    @model_validator(mode="before")
    @classmethod
    def _ignore_case(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        behaviors: dict[str, Any] = {}
        for key, value in raw.items():
            name = str(key).strip().lower()
            if name in behaviors:
                raise PydanticCustomError(ADVICE, "a severity appears twice")
            behaviors[name] = value.strip().lower() if isinstance(value, str) else value
        return behaviors


class FlowLimits(FlowSection, LimitsSection):
    """Ceilings for one run of a flow."""


def _read_as(
    section: type[Section], value: type[T], build: Callable[[dict[str, Any]], T]
) -> BeforeValidator:
    """Returns a validator that builds a value of a lower layer from its section in a file."""

    def read(raw: Any) -> T:
        if isinstance(raw, value):
            return raw
        return build(section.model_validate(raw).model_dump(exclude_none=True))

    return BeforeValidator(read, json_schema_input_type=section)


SourceField = Annotated[
    SourceBlock, _read_as(SourceSection, SourceBlock, lambda fields: SourceBlock(**fields))
]
BehaviorField = Annotated[
    ConstraintBehavior,
    _read_as(BehaviorSection, ConstraintBehavior, ConstraintBehavior.from_dict),
]
LimitsField = Annotated[Limits, _read_as(FlowLimits, Limits, lambda fields: Limits(**fields))]


class Goal(FlowSection):
    """What to write, and the material to write it from."""

    goal: Word = Field(title="What to write", description="a text that says what to write")
    source: SourceField = Field(
        default_factory=SourceBlock, title="The material to write it from", description=SOURCES
    )

    @property
    def text(self) -> str:
        """What to write."""
        return self.goal


def _goal_from_text(raw: Any) -> Any:
    if not isinstance(raw, str):
        return raw
    if not raw.strip():
        raise ValueError(raw)
    return Goal(goal=raw)


GoalField = Annotated[Goal, BeforeValidator(_goal_from_text, json_schema_input_type=Word | Goal)]
"""A goal's text, or a mapping with its material."""

IndependenceRule = Literal["none", "different_family"]


class Independence(FlowSection):
    """Whether critics may share the author's model family."""

    rule: IndependenceRule = Field(
        "different_family", title="The rule", description="one of: none, different_family"
    )
    otherwise: Literal["refuse", "report"] = Field(
        "refuse", title="When it cannot be kept", description="one of: refuse, report"
    )


def _independence_from_rule(raw: Any) -> Any:
    return {"rule": raw} if raw in ("none", "different_family") else raw


IndependenceField = Annotated[
    Independence,
    BeforeValidator(
        _independence_from_rule, json_schema_input_type=IndependenceRule | Independence
    ),
]
"""The rule alone, or a mapping that also says what happens otherwise."""


class RoutingRule(FlowSection):
    """Sends constraints whose id matches a glob to some agents."""

    match: Word = Field(title="Which constraints", description="a pattern over constraint ids")
    agents: Agents = Field(title="Who reviews them", description=AGENTS)


class PriorityRoute(FlowSection):
    """Sends constraints of a range of priorities to some agents."""

    range: Annotated[tuple[int, int], Strict(False)] = Field(
        title="Which priorities, both ends included",
        description="two whole numbers, the smaller one first, as in [1, 3]",
    )
    agents: Agents = Field(title="Who reviews them", description=AGENTS)

    @field_validator("range")
    @classmethod
    def _rises(cls, value: tuple[int, int]) -> tuple[int, int]:
        if value[0] > value[1]:
            raise ValueError(value)
        return value

    @property
    def low(self) -> int:
        """The smallest priority."""
        return self.range[0]

    @property
    def high(self) -> int:
        """The largest priority."""
        return self.range[1]


class RoutingConfig(FlowSection):
    """Who reviews what, where neither the step nor the constraint names an agent."""

    default_agents: Many[AgentName] = Field(
        (), title="Who reviews everything else", description=AGENTS
    )
    rules: Many[RoutingRule] = Field(
        (),
        title="Who reviews constraints of some ids; the first match wins",
        description="a list of {match, agents}",
    )
    priority_routing: Many[PriorityRoute] = Field(
        (),
        title="Who reviews constraints of some priorities; the first match wins",
        description="a list of {range, agents}",
    )


class ConstraintConfig(FlowSection):
    """Where the constraints are, and who reviews them."""

    dir: Word | None = Field(
        None, title="A folder of constraint files", description="the path of a folder"
    )
    files: Many[Word] = Field(
        (), title="Constraint files, taken before the folder's", description=PATHS
    )
    inline: dict[str, Word] = Field(
        default_factory=dict,
        title="Constraints in one line each",
        description="a sentence by constraint id, as in {short: No sentence is long.}",
    )
    routing: RoutingConfig = Field(
        default_factory=RoutingConfig,
        title="Who reviews what",
        description="default_agents, rules or priority_routing",
    )
