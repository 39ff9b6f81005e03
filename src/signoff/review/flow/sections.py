"""The sections that flow, constraint and goal files share.

Each class is both the model that reads a section of a file and the value that the rest of the
package uses. Where the value belongs to a lower layer, a validator builds it from the section
that describes its form in files.

A field's description says what is valid and appears in error messages. Its docstring says what
the field is for and appears in the JSON Schemas.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from types import UnionType
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    Strict,
    create_model,
    field_validator,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from signoff.core.severity import DEFAULT_SEVERITY, SEVERITIES, IssueBehavior, Severity
from signoff.core.spend import Limits
from signoff.documents.mistakes import ADVICE
from signoff.documents.sections import LimitsSection, Section
from signoff.review.pure.constraint import ConstraintBehavior, SourceBlock

T = TypeVar("T")


def _not_empty(values: tuple[T, ...]) -> tuple[T, ...]:
    if not values:
        raise ValueError(values)
    return values


Many = Annotated[tuple[T, ...], Strict(False)]
"""A list in files. Strict mode would only accept a tuple, which YAML does not have."""
Some = Annotated[
    tuple[T, ...],
    Strict(False),
    # `min_length` would also report a list whose only value is wrong as too short.
    AfterValidator(_not_empty),
    Field(json_schema_extra={"minItems": 1}),
]
"""A list in files with at least one value."""
Text = Annotated[str, Field(description="a text")]
Word = Annotated[str, Field(min_length=1, pattern=r"\S", description="a text that is not empty")]
Paths = Annotated[Many[Word], Field(description="a list of paths")]


def _upper(value: Any) -> Any:
    return value.strip().upper() if isinstance(value, str) else value


SeverityName = Annotated[
    Severity, Strict(False), BeforeValidator(_upper), Field(description=f"one of: {SEVERITIES}")
]
"""A severity in upper or lower case."""
AgentName = Annotated[str, Field(min_length=1, pattern=r"\S", description="an agent's name")]
AGENTS = 'a list of agents, as in ["claude", "codex"]'
Agents = Annotated[Some[AgentName], Field(description=AGENTS)]
_WORST, *_, _MILDEST = Severity
BEHAVIORS = f"behaviors by severity, as in {{{_WORST.key}: halt, {_MILDEST.key}: ignore}}"
SOURCES = "files, globs, scripts or inline"


class FlowSection(Section):
    """A section of a file that is also a value: it never changes, and types are not converted.

    Sections that are valid for sure, such as defaults, are created by `model_construct`: the first
    validation by a class builds its validator, and only that of the whole file is needed.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    @classmethod
    def __pydantic_init_subclass__(cls, **_options: Any) -> None:
        """Says what is valid for each field that does not say it, because its type does."""
        for field in cls.model_fields.values():
            field.description = field.description or _valid_values(field.annotation)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Takes the purpose of each field from its docstring."""
        reference = handler(schema)
        # One text serves the reader of the code and the user of an editor, so the two cannot
        # disagree.
        fields = handler.resolve_ref_schema(reference)["properties"]
        for base in reversed(cls.__mro__):
            for name, text in _field_docstrings(base):
                if name in fields:
                    fields[name]["title"] = text.removesuffix(".")
        return reference


def _valid_values(annotation: Any) -> str | None:
    """Returns what is valid for a switch, a choice or a section; None for any other type."""
    is_union = get_origin(annotation) in (Union, UnionType)
    kind = get_args(annotation)[0] if is_union else annotation
    if kind is bool:
        return "true or false"
    if get_origin(kind) is Literal:
        return f"one of: {', '.join(map(str, get_args(kind)))}"
    if not (isinstance(kind, type) and issubclass(kind, Section)):
        return None
    *names, last = kind.model_fields
    return f"{', '.join(names)} or {last}" if names else last


def _field_docstrings(kind: type) -> Iterator[tuple[str, str]]:
    """Yields the text below each field of a section. Python drops it, so the source is parsed."""
    if kind is not FlowSection and issubclass(kind, FlowSection):
        for node in ast.walk(ast.parse(inspect.getsource(kind))):
            for field, text in pairwise(node.body if isinstance(node, ast.ClassDef) else ()):
                match field, text:
                    case ast.AnnAssign(), ast.Expr(value=ast.Constant(value=str(purpose))):
                        yield ast.unparse(field.target), purpose


class SourceSection(FlowSection):
    """Material to work from."""

    files: Paths = ()
    """Files to read."""
    globs: Many[Word] = Field((), description="a list of patterns")
    """Patterns of files to read."""
    scripts: Many[Word] = Field((), description="a list of commands")
    """Programs whose output is read, where scripts are allowed."""
    inline: Text = ""
    """The material itself."""


Behavior = Annotated[
    Annotated[IssueBehavior, Strict(False)] | None,
    Field(description=f"one of: {', '.join(IssueBehavior)}"),
]


class _BehaviorForm(FlowSection):
    """Accepts keys and values in upper or lower case."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Keeps the titles of the fields; a model made from a list has no docstrings to read."""
        return handler(schema)

    @model_validator(mode="before")
    @classmethod
    def _ignore_case(cls, raw: Any) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        behaviors: dict[str, Any] = {}
        for key, value in raw.items():
            name = str(key).strip().lower()
            # Keys are read in any case, so `High` and `high` could both be there; the later one
            # would win silently.
            if name in behaviors:
                raise PydanticCustomError(ADVICE, "a severity appears twice")
            behaviors[name] = value.strip().lower() if isinstance(value, str) else value
        return behaviors


_BEHAVIOR_FIELDS: dict[str, Any] = {
    each.key: (Behavior, Field(None, title=f"{each} findings")) for each in Severity
}
BehaviorSection = create_model(
    "BehaviorSection",
    __base__=_BehaviorForm,
    __doc__="What findings do, by severity; a missing severity is left to weaker levels.",
    **_BEHAVIOR_FIELDS,
)


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
    """What to write, and the material for it."""

    goal: Word = Field(description="a text that says what to write")
    """What to write."""
    source: SourceField = Field(default_factory=SourceBlock, description=SOURCES)
    """The material for it."""

    @property
    def text(self) -> str:
        """What to write."""
        return self.goal


def _or_text(section: type[FlowSection], key: str) -> BeforeValidator:
    """Returns a validator that accepts a text in the place of a section with just one key."""

    def read(raw: Any) -> Any:
        if not isinstance(raw, str):
            return raw
        if not raw.strip():
            raise ValueError(raw)
        return section.model_construct(None, **{key: raw})

    return BeforeValidator(read, json_schema_input_type=Word | section)


GoalField = Annotated[Goal, _or_text(Goal, "goal")]
"""A goal's text, or a mapping with its material."""


class RoutingRule(FlowSection):
    """Assigns agents to constraints whose id matches a glob."""

    match: Word = Field(description="a pattern over constraint ids")
    """The constraints."""
    agents: Agents
    """The agents that review them."""


class PriorityRoute(FlowSection):
    """Assigns agents to constraints in a range of priorities."""

    range: Annotated[tuple[int, int], Strict(False)] = Field(
        description="two whole numbers, the smaller one first, as in [1, 3]"
    )
    """The priorities, both ends included."""
    agents: Agents
    """The agents that review them."""

    @field_validator("range")
    @classmethod
    def _rises(cls, value: tuple[int, int]) -> tuple[int, int]:
        if value[0] > value[1]:
            raise ValueError(value)
        return value


class RoutingConfig(FlowSection):
    """The agents of each constraint, where neither the step nor the constraint names any."""

    default_agents: Many[AgentName] = Field((), description=AGENTS)
    """The agents that review everything else."""
    rules: Many[RoutingRule] = Field((), description="a list of {match, agents}")
    """The agents by constraint id; the first match wins."""
    priority_routing: Many[PriorityRoute] = Field((), description="a list of {range, agents}")
    """The agents by priority; the first match wins."""


class InlineConstraint(FlowSection):
    """A constraint with one rule, in the flow file itself."""

    misplaced_keys: ClassVar[Mapping[str, str]] = {"description": "it is called `summary` here"}

    summary: Word = Field(description="a sentence")
    """What has to hold."""
    agents: Agents | None = Field(None, description=AGENTS)
    """The agents that review it."""
    severity: SeverityName = DEFAULT_SEVERITY
    """How severe a violation is, if the critic does not say."""


InlineField = Annotated[InlineConstraint, _or_text(InlineConstraint, "summary")]
"""A sentence, or a mapping that also names agents and a severity."""


class ConstraintConfig(FlowSection):
    """Where the constraints are, and which agents review them."""

    dir: Word | None = Field(None, description="the path of a folder")
    """A folder of constraint files."""
    files: Paths = ()
    """Constraint files, used before those of the folder."""
    inline: dict[str, InlineField] = Field(
        default_factory=dict,
        description="a sentence, or {summary, agents, severity}, by constraint id, as in "
        "{short: No sentence is long.}",
    )
    """Constraints with one rule each."""
    routing: RoutingConfig = Field(default_factory=RoutingConfig.model_construct)
    """The agents of each constraint."""
