"""The shape of a definition: what a contract file or a Python dict may hold.

These models also become the JSON Schema of contract files. Whether steps, branches and
commands fit together is checked in `definition.py`.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    Discriminator,
    Field,
    Tag,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    field_validator,
)

from signoff.documents.sections import LimitsSection, Section

VERSION = 1

STEP_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
STEP = "the name of a step"
EXPRESSION = (
    "an expression over ctx, result, checkpoint, params and hint, or package.module:function"
)

NEXT = f"{STEP}, or a mapping with condition, on_true and on_false"
COMMAND = "a list (a program and its arguments), or package.module:function"

Text = Annotated[str, Field(min_length=1, pattern=r"\S", description="a text that is not empty")]


def _or_function(raw: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Lets functions through, which only definitions in Python hold."""
    return raw if callable(raw) else validate(raw)


Check = Annotated[
    str,
    Field(min_length=1, pattern=r"\S", description=EXPRESSION),
    WrapValidator(_or_function),
]
Function = Annotated[
    str,
    Field(min_length=1, pattern=r"\S", description=COMMAND),
    WrapValidator(_or_function),
]


def _form(raw: Any) -> str:
    """Returns which form of a value was meant."""
    if isinstance(raw, dict | Section):
        return "mapping"
    return "list" if isinstance(raw, list) else "text"


class ConditionSection(Section):
    """Something that must be true before or after a step."""

    name: Text = Field(title="What it is called", description="a short name")
    check: Check = Field(title="What must be true")
    error: str = Field(
        "", title="What is said when it is false", description="a text for whoever tries again"
    )


ConditionField = Annotated[
    Annotated[Check, Tag("text")] | Annotated[ConditionSection, Tag("mapping")],
    Discriminator(_form),
]


class NextSection(Section):
    """Leads one way or another, by what the step gave."""

    condition: Check = Field(title="What decides")
    on_true: Text = Field(title="The step if it holds", description=STEP)
    on_false: Text = Field(title="The step if it does not", description=STEP)
    max_iterations: int | None = Field(
        None,
        ge=1,
        title="How often the branch that loops may be taken",
        description="a whole number from 1",
    )


class GateOptionSection(Section):
    """One way on from a gate."""

    label: Text = Field(title="What a person chooses", description="a text of its own")
    next_step: Text | None = Field(
        None, title="Where it leads; null ends the workflow", description=f"{STEP}, or null"
    )
    requires_input: bool = Field(
        False, title="Whether the person must write something", description="true or false"
    )
    ends: Literal["completed", "rejected"] | None = Field(
        None, title="How it ends the workflow", description="one of: completed, rejected"
    )


class GateSection(Section):
    """Where a person decides how to go on."""

    prompt: Text = Field(title="What the person is asked", description="a text")
    options: list[GateOptionSection] = Field(
        min_length=1, title="The ways on", description="a list of options, each with a label"
    )
    context: list[Text] = Field(
        default_factory=list,
        title="What the person is shown",
        description="a list of dotted names of what steps gave",
    )


class DatabaseSection(Section):
    """The database the workflow works on."""

    url: Text = Field(
        title="Where it is",
        description="a SQLite file seen from the project's folder, or postgresql://...",
    )
    backup: bool = Field(
        True, title="Whether a copy is taken before a run changes it", description="true or false"
    )
    keep: int = Field(
        10, ge=1, title="How many copies are kept", description="a whole number from 1"
    )
    backups: Text | None = Field(
        None, title="The folder of the copies", description="a folder seen from the project's"
    )


class StepSection(Section):
    """One step: what is done, what must hold, and what follows."""

    name: str = Field(
        pattern=STEP_NAME,
        max_length=100,
        title="What it is called",
        description="letters, digits, - _ and .",
    )
    title: str = Field("", title="What people read", description="a text")
    command: (
        Annotated[
            Annotated[Function, Tag("text")]
            | Annotated[
                Annotated[list[str], Field(min_length=1, description="a program, its arguments")],
                Tag("list"),
            ],
            Discriminator(_form),
        ]
        | None
    ) = Field(None, title="What is run", description=COMMAND)
    prompt: str = Field(
        "",
        title="What an agent is asked; {{name}} stands for a value",
        description="a text",
    )
    agent: Text | None = Field(
        None, title="Who is asked; the default agent otherwise", description="an agent or a role"
    )
    model: Text | None = Field(
        None, title="The model that agent uses", description="a model's name"
    )
    result: dict[str, Any] | None = Field(
        None,
        alias="schema",
        title="What the agent's result looks like",
        description="a JSON Schema",
    )
    preconditions: list[ConditionField] = Field(
        default_factory=list,
        title="What must be true before",
        description="a list of conditions: expressions, or mappings with name, check and error",
    )
    postconditions: list[ConditionField] = Field(
        default_factory=list,
        title="What must be true afterwards",
        description="a list of conditions: expressions, or mappings with name, check and error",
    )
    parallel: bool = Field(
        False,
        title="Whether it runs together with its neighbours that say so too",
        description="true or false",
    )
    parallel_key: Text | None = Field(
        None,
        title="The list whose items are worked one by one",
        description="the dotted name of a list that a step or a parameter gives",
    )
    human_gate: GateSection | None = Field(
        None,
        title="Where a person decides how to go on",
        description="a mapping with prompt, options and context",
    )
    next: (
        Annotated[
            Annotated[
                Annotated[str, Field(min_length=1, pattern=r"\S", description=NEXT)], Tag("text")
            ]
            | Annotated[NextSection, Tag("mapping")],
            Discriminator(_form),
        ]
        | None
    ) = Field(None, title="What follows; nothing ends the workflow", description=NEXT)
    timeout: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        title="Seconds one attempt may take",
        description="a number of seconds above 0",
    )


class ContractFile(Section):
    """A workflow whose steps prove that they were done."""

    version: Literal[1] = Field(1, title="The form of the file", description="1")
    notation: Literal["contracts"] = Field(
        "contracts", title="The notation of the file", description="contracts"
    )
    type: Text = Field(
        title="A short name for this kind of workflow", description="such as w1_editing"
    )
    name: str = Field("", title="What it is called", description="a text")
    description: str = Field("", title="What it is for", description="a text")
    initial_step: Text | None = Field(
        None, title="Where it begins; otherwise at the first step", description=STEP
    )
    database: (
        Annotated[
            Annotated[Text, Tag("text")] | Annotated[DatabaseSection, Tag("mapping")],
            Discriminator(_form),
        ]
        | None
    ) = Field(
        None,
        title="The database the workflow works on",
        description="a file seen from the project's folder, postgresql://..., or a mapping",
    )
    roles: dict[str, Text] = Field(
        default_factory=dict,
        title="Which agent plays a role, where the settings say nothing",
        description="agents by role, as in {writer: claude}",
    )
    limits: LimitsSection | None = Field(
        None, title="Ceilings for one run", description="usd, tokens, calls and seconds"
    )
    params: list[Text] | None = Field(
        None,
        title="The parameters a run may be started with; others are refused",
        description="a list of names",
    )
    steps: list[StepSection] = Field(
        min_length=1, title="The steps", description="a list of steps, each with a name"
    )

    @field_validator("database")
    @classmethod
    def _address_alone(cls, database: str | DatabaseSection | None) -> DatabaseSection | None:
        return DatabaseSection(url=database) if isinstance(database, str) else database


class PythonStep(StepSection):
    """A step that is defined in Python, where its name may hold any other characters."""

    name: str = Field(pattern=r"^[^+/]+$", description="a name without + and /")


class PythonDefinition(ContractFile):
    """A workflow that is defined in Python."""

    commands: dict[str, Any] = Field(default_factory=dict, description="functions by name")
    folder: Text | None = Field(None, description="the path of a folder")
    # Lists are invariant to the type checker, but these are only read.
    steps: list[PythonStep] = Field(  # type: ignore[assignment]
        min_length=1, description="a list of steps, each with a name"
    )
