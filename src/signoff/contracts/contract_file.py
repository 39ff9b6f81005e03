"""The shape of a definition: the keys of a contract file or of a definition in Python.

These models also become the JSON Schema of contract files, and `read_definition` turns what they
accept into the public types. Whether steps, branches and commands fit together is checked in
`definition.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
)

from signoff.contracts import model
from signoff.contracts.model import WorkflowDefinition
from signoff.core.spend import Limits
from signoff.documents.mistakes import Mistake, Path, mistakes_of, without_paths
from signoff.documents.sections import LimitsSection, Section

VERSION = 1

STEP = "the name of a step"
NEXT = f"{STEP}, or a mapping with condition, on_true and on_false"
EXPRESSION = (
    "an expression over ctx, result, results, checkpoint, params and hint, or "
    "package.module:function"
)
COMMAND = "a list (a program and its arguments), or package.module:function"
CONDITIONS = "a list of conditions: expressions, or mappings with name, check, error and query"
FILE_OR_SERVER = "a file relative to the project's folder, or postgresql://..."


def _not_blank(description: str) -> Any:
    return Field(min_length=1, pattern=r"\S", description=description)


Text = Annotated[str, _not_blank("a text that is not empty")]


def _allow_function(raw: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Accepts functions, which only definitions in Python can contain."""
    return raw if callable(raw) else validate(raw)


Check = Annotated[str, _not_blank(EXPRESSION), WrapValidator(_allow_function)]
Function = Annotated[str, _not_blank(COMMAND), WrapValidator(_allow_function)]


def _form(raw: Any) -> str:
    """Returns the tag of the form that the author used."""
    if isinstance(raw, dict | Section):
        return "mapping"
    return "list" if isinstance(raw, list) else "text"


def _optional(title: str, description: str, **rules: Any) -> Any:
    return Field(None, title=title, description=description, **rules)


def _text(title: str) -> Any:
    return Field("", title=title, description="a text")


def _flag(title: str, *, default: bool = False) -> Any:
    return Field(default, title=title, description="true or false")


class ConditionSection(Section):
    """Something that must be true before or after a step."""

    name: Text = Field(title="The name of the condition", description="a short name")
    check: Check = Field(title="What must be true")
    error: str = _text("The error message if it is false")
    query: str = _text("A SELECT; the check is then about its rows, or about the value it returns")
    values: dict[str, Text] = Field(
        {},
        title="The values of the query's :names",
        description="a mapping of names to expressions",
    )


ConditionField = Annotated[
    Annotated[Check, Tag("text")] | Annotated[ConditionSection, Tag("mapping")],
    Discriminator(_form),
]


class NextSection(Section):
    """A branch: which step follows depends on the result."""

    condition: Check = Field(title="What decides")
    on_true: Text = Field(title="The step if it is true", description=STEP)
    on_false: Text = Field(title="The step if it is false", description=STEP)
    max_iterations: int | None = _optional(
        "How often the branch that loops may be taken", "a whole number from 1", ge=1
    )


NextField = Annotated[
    Annotated[Annotated[str, _not_blank(NEXT)], Tag("text")]
    | Annotated[NextSection, Tag("mapping")],
    Discriminator(_form),
]


class GateOptionSection(Section):
    """One choice at a gate."""

    label: Text = Field(title="The name of the choice", description="a label of its own")
    next_step: Text | None = _optional(
        "The step that follows; null ends the workflow", f"{STEP}, or null"
    )
    requires_input: bool = _flag("Whether the human must write something")
    ends: Literal["completed", "rejected"] | None = _optional(
        "How it ends the workflow", "one of: completed, rejected"
    )


class GateSection(Section):
    """A decision by a human about what follows a step."""

    prompt: Text = Field(title="The question", description="a text")
    options: list[GateOptionSection] = Field(
        min_length=1, title="The choices", description="a list of options, each with a label"
    )
    context: list[Text] = Field(
        [], title="The values that are shown", description="a list of dotted names of results"
    )
    presence: bool = _flag("Whether it needs the signature of a passkey, except to reject")


class DatabaseSection(Section):
    """The database that the steps read and change."""

    url: Text = Field(title="Its address", description=FILE_OR_SERVER)
    backup: bool | None = Field(
        None,
        title="Whether to back it up before a run changes it: a SQLite file, unless it is false",
        description="true or false",
    )
    keep: int = Field(
        10, ge=1, title="How many backups are kept", description="a whole number from 1"
    )
    backups: Text | None = _optional(
        "The folder of the backups", "a folder relative to the project's folder"
    )


DatabaseField = Annotated[
    Annotated[Text, Tag("text")] | Annotated[DatabaseSection, Tag("mapping")],
    Discriminator(_form),
]
CommandField = Annotated[
    Annotated[Function, Tag("text")]
    | Annotated[
        Annotated[list[str], Field(min_length=1, description="a program, its arguments")],
        Tag("list"),
    ],
    Discriminator(_form),
]


class StepSection(Section):
    """One step: its work, its conditions, and what follows."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$",
        max_length=100,
        title="The name of the step",
        description="letters, digits, - _ and .",
    )
    title: str = _text("What users see")
    command: CommandField | None = _optional("The program or function to run", COMMAND)
    prompt: str = _text("The prompt for an agent; {{name}} is replaced by a value")
    agent: Text | None = _optional("The agent; otherwise the default agent", "an agent or a role")
    model: Text | None = _optional("The agent's model", "a model's name")
    result: dict[str, Any] | None = _optional(
        "The schema of the agent's result", "a JSON Schema", alias="schema"
    )
    preconditions: list[ConditionField] = Field(
        [], title="What must be true before the step", description=CONDITIONS
    )
    postconditions: list[ConditionField] = Field(
        [], title="What must be true after the step", description=CONDITIONS
    )
    parallel: bool = _flag("Whether it runs together with the parallel steps next to it")
    parallel_key: Text | None = _optional(
        "The list; the step runs once for each of its items",
        "the dotted name of a list that a step returns or that is a parameter",
    )
    human_gate: GateSection | None = _optional(
        "A human decides what follows", "a mapping with prompt, options and context"
    )
    next: NextField | None = _optional("What follows; without it, the workflow ends", NEXT)
    timeout: float | None = _optional(
        "Seconds for one attempt", "a number of seconds above 0", gt=0, allow_inf_nan=False
    )


class ContractFile(Section):
    """A workflow whose steps are checked by conditions."""

    version: Literal[1] = Field(1, title="The version of the file format", description="1")
    notation: Literal["contracts"] = Field(
        "contracts", title="The notation of the file", description="contracts"
    )
    type: Text = Field(
        title="A short name for this kind of workflow", description="such as w1_editing"
    )
    name: str = _text("What users see")
    description: str = _text("What the workflow is for")
    initial_step: Text | None = _optional("The step to start with; otherwise the first", STEP)
    database: DatabaseField | None = _optional(
        "The database that the steps read and change", f"{FILE_OR_SERVER}, or a mapping"
    )
    roles: dict[str, Text] = Field(
        {},
        title="The agent for each role, unless the settings name one",
        description="agents by role, as in {writer: claude}",
    )
    limits: LimitsSection | None = _optional("Limits for one run", "usd, tokens, calls and seconds")
    params: list[Text] | None = _optional(
        "The parameters that a run accepts; others are refused", "a list of names"
    )
    steps: list[StepSection] = Field(
        min_length=1, title="The steps", description="a list of steps, each with a name"
    )

    @field_validator("database")
    @classmethod
    def _from_address(cls, database: str | DatabaseSection | None) -> DatabaseSection | None:
        return DatabaseSection(url=database) if isinstance(database, str) else database


class PythonStep(StepSection):
    """A step that is defined in Python, whose name may contain other characters as well."""

    name: str = Field(pattern=r"^[^+/]+$", description="a name without + and /")


class PythonDefinition(ContractFile):
    """A workflow that is defined in Python."""

    commands: dict[str, Any] = Field({}, description="functions by name")
    folder: Text | None = _optional("The folder in which programs run", "the path of a folder")
    # Lists are invariant to the type checker, but these are only read.
    steps: list[PythonStep] = Field(  # type: ignore[assignment]
        min_length=1, description="a list of steps, each with a name"
    )


Locate = Callable[[Path], str]
"""Returns the location of a key, as in `file:line`."""

_TYPES: Mapping[type[BaseModel], type[Any]] = {
    ConditionSection: model.Condition,
    ContractFile: model.WorkflowDefinition,
    DatabaseSection: model.Database,
    GateOptionSection: model.GateOption,
    GateSection: model.HumanGate,
    NextSection: model.ConditionalNext,
    PythonDefinition: model.WorkflowDefinition,
    PythonStep: model.WorkflowStep,
    StepSection: model.WorkflowStep,
    LimitsSection: Limits,
}
"""The public type for each section of a definition."""

_FOREIGN = frozenset({"schema", "commands", "roles", "values"})
"""Keys whose values have the author's own keys, which stay as they are."""

_CAMEL = re.compile(r"(?<=[a-z0-9])([A-Z])")


def read_definition(
    raw: dict[str, Any], shape: type[ContractFile]
) -> tuple[WorkflowDefinition | None, list[Mistake]]:
    """Returns the definition, and every mistake in its shape.

    With mistakes, the definition lacks the invalid values and only serves to find more problems.
    """
    mistakes: list[Mistake] = []
    # Invalid values are removed one round after the other, until the rest can be read: so that one
    # typo does not hide all mistakes that only a readable definition shows.
    while True:
        try:
            return _typed(shape.model_validate(raw, strict=True), raw), mistakes
        except ValidationError as error:
            found = mistakes_of(error, shape)
        # A key that is missing because its invalid value was removed is not a mistake.
        mistakes = mistakes or found
        if any(_is_essential(mistake.path) for mistake in found):
            # Whether steps fit together can only be checked if all of them are there.
            return None, mistakes
        raw = without_paths(raw, [mistake.path for mistake in found])


def _is_essential(path: Path) -> bool:
    return path[:1] in (("type",), ("steps",)) and (len(path) < 3 or path[2] == "name")


def _typed(value: Any, raw: Any) -> Any:
    """Returns a value of the model as the public type, with its defaults for missing keys.

    Plain values are taken from `raw`: the model turns `5` into `5.0`, which would change the
    digest of the definition.
    """
    if isinstance(value, list):
        return tuple(_typed(*pair) for pair in zip(value, raw, strict=True))
    kind = _TYPES.get(type(value))
    if kind is None:
        return raw
    raw = raw if isinstance(raw, dict) else {"url": raw}
    known = {field.name for field in fields(kind)}
    names = {field.alias or name: name for name, field in type(value).model_fields.items()}
    return kind(
        **{
            key: _typed(getattr(value, names[key]), each)
            for key, each in raw.items()
            if key in known and each is not None
        }
    )


def to_plain_values(node: Any, *, drop_empty: bool = False) -> Any:
    """Returns a definition as plain values, with keys in snake case.

    `drop_empty` removes keys whose value is None, which means the default in Python.
    """
    # A subclass of the user may have more fields, so the fields of our own type are read. Those
    # that are not compared are found while the definition is read.
    if kind := next((each for each in _TYPES.values() if isinstance(node, each)), None):
        node = {each.name: getattr(node, each.name) for each in fields(kind) if each.compare}
    if isinstance(node, list | tuple):
        return [to_plain_values(each, drop_empty=drop_empty) for each in node]
    if not isinstance(node, Mapping):
        return node
    return {
        snake_case(str(key)): (
            value if key in _FOREIGN else to_plain_values(value, drop_empty=drop_empty)
        )
        for key, value in node.items()
        if value is not None or not drop_empty
    }


def snake_case(key: str) -> str:
    """Returns a key in snake case; `Name` stays as it is and is rejected as unknown."""
    return _CAMEL.sub(r"_\1", key).lower() if _CAMEL.search(key) else key
