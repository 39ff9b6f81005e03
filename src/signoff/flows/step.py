"""The steps of a flow: the kinds of step, and the keys each kind has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, GetJsonSchemaHandler, Strict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from signoff.flows.sections import AgentName, FlowSection, Many, Word
from signoff.review.constraint import Constraint

Scope = Literal["accumulated", "previous", "all"]
"""Which critiques a judge sees."""

NAME = r"^[A-Za-z0-9_-]+$"
NAME_WORDS = "letters, digits, _ and -"
FILES_STEP = "files"
"""The id of the step that reads the files of `artifact:`; it is not listed in files."""
POLICY_JUDGE = "policy"
"""The agent of an adjudicate step in which rules decide alone, without a model."""


class StepKind(StrEnum):
    """The kinds of step."""

    GENERATE = "generate"
    CRITIQUE = "critique"
    ADJUDICATE = "adjudicate"
    REFINE = "refine"
    SIGN_OFF = "sign_off"


Mode = Annotated[
    Literal["edit", "rewrite", "apply"], Field(description="one of: edit, rewrite, apply")
]
ModelName = Annotated[Word | None, Field(description="a model's name")]

PURPOSE: Mapping[StepKind, str] = {
    StepKind.GENERATE: "Writes the artifact",
    StepKind.CRITIQUE: "Reviews the artifact against constraints",
    StepKind.ADJUDICATE: "Decides about the findings",
    StepKind.REFINE: "Fixes the artifact",
    StepKind.SIGN_OFF: "Has a human approve the artifact",
}
_COMMON = ("step", "name", "agent", "model", "timeout")
_OWN: Mapping[StepKind, tuple[str, ...]] = {
    StepKind.GENERATE: ("prompt",),
    StepKind.CRITIQUE: ("execution", "order", "constraints"),
    StepKind.ADJUDICATE: ("scope", "on_approved"),
    StepKind.REFINE: (
        *("mode", "loop_to", "validation_retries", "max_size_change_pct", "on_invalid"),
        "prompt",
    ),
    StepKind.SIGN_OFF: ("deadline", "default", "presence"),
}
"""The keys that not every kind of step has."""


def keys_of(kind: StepKind) -> tuple[str, ...]:
    """Returns the keys that a step of a kind may have in a file."""
    # A human signs off, so such a step has no agent.
    common = ("step", "name") if kind is StepKind.SIGN_OFF else _COMMON
    return common + _OWN[kind]


def owners(key: str) -> str:
    """Returns a sentence that names the kinds of step with a key; empty if no kind has it."""
    kinds = [kind.value for kind, keys in _OWN.items() if key in keys]
    return f"only {' and '.join(kinds)} steps have it" if kinds else ""


class WorkflowStep(FlowSection):
    """One step of a flow; keys of other kinds than its own keep their defaults."""

    step: Annotated[StepKind, Strict(False)] = Field(description=f"one of: {', '.join(StepKind)}")
    """The kind of step."""
    name: str | None = Field(None, pattern=NAME, max_length=100, description=NAME_WORDS)
    """The name, for loop_to."""
    agent: AgentName | None = Field(None, description="an agent's name")
    """The agent; the default agent if it is absent."""
    model: ModelName = None
    """The model that the agent uses."""
    prompt: Literal["full", "brief"] = Field("full", description="one of: full, brief")
    """Everything that an author should know, or only the goal, for small models."""
    execution: Literal["parallel", "serial"] = Field(
        "parallel", description="one of: parallel, serial"
    )
    """All at once, or one after the other with an early end."""
    order: Literal["priority", "definition"] = Field(
        "priority", description="one of: priority, definition"
    )
    """Which constraint comes first."""
    constraints: Many[Word] | None = Field(
        None, description='a list of patterns over constraint ids, as in ["style*"]'
    )
    """The constraints; all if it is absent."""
    scope: Scope = Field("accumulated", description="one of: accumulated, previous, all")
    """The critiques that the judge sees."""
    on_approved: Literal["finish", "continue"] | None = Field(
        None, description="one of: finish, continue"
    )
    """What a pass does; by default the last judge ends the run, others continue it."""
    mode: Mode = "edit"
    """Edits a file, writes the whole text again, or applies literal edits first."""
    loop_to: str | None = Field(None, pattern=NAME, description="the name of an earlier step")
    """The earlier step where the next round starts."""
    validation_retries: int = Field(0, ge=0, le=10, description="a whole number from 0 to 10")
    """How often an edit that changed nothing, or too much, is sent back."""
    max_size_change_pct: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="a percentage above 0"
    )
    """By how much an edit may change the number of words."""
    on_invalid: Literal["continue", "escalate"] = Field(
        "continue", description="one of: continue, escalate"
    )
    """What happens with an edit that stays invalid: it is logged, or a human decides."""
    timeout: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="a number of seconds above 0"
    )
    """Seconds that one call may take."""
    deadline: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="a number of seconds above 0"
    )
    """Seconds that a human has to sign off, before the default counts."""
    default: Literal["approve", "reject"] | None = Field(
        None, description="one of: approve, reject"
    )
    """What counts if no human signs off in time; needed with a deadline."""
    presence: bool = Field(False, description="true or false")
    """Whether the approval needs the signature of a passkey."""
    id: str = ""
    """The step's id in the graph, set by `with_ids`; no key of files."""

    from_dict: ClassVar[Callable[[Mapping[str, Any]], WorkflowStep]]
    """Reads one step as it is in YAML; set by `signoff.flows.reading`."""

    def selects(self, constraint: Constraint) -> bool:
        """Tells whether a critique step reviews a constraint."""
        if self.constraints is None:
            return True
        return any(fnmatchcase(constraint.id, pattern) for pattern in self.constraints)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describes each kind by itself, so that an editor marks a key of another kind."""
        reference = super().__get_pydantic_json_schema__(schema, handler)
        whole = handler.resolve_ref_schema(reference)
        kinds = [_schema_of(kind, whole["properties"]) for kind in StepKind]
        whole.clear()
        whole["oneOf"] = kinds
        return reference


def _schema_of(kind: StepKind, properties: Mapping[str, Any]) -> dict[str, Any]:
    constant = {"const": kind.value, "type": "string"}
    step = {**constant, "title": PURPOSE[kind], "description": kind.value}
    return {
        "type": "object",
        "description": f"{PURPOSE[kind]}.",
        "additionalProperties": False,
        "properties": {**{key: properties[key] for key in keys_of(kind)}, "step": step},
        "required": ["step"],
    }


def with_ids(steps: Iterable[WorkflowStep]) -> tuple[WorkflowStep, ...]:
    """Gives each step its id: its name, or its kind, with its position if the kind repeats."""
    steps = tuple(steps)
    names = {step.name for step in steps if step.name}
    unnamed = [step.step for step in steps if not step.name]

    def own(position: int, step: WorkflowStep) -> str:
        if step.name:
            return step.name
        alone = unnamed.count(step.step) == 1 and step.step.value not in names
        return step.step.value if alone else f"{step.step.value}_{position}"

    return tuple(step.model_copy(update={"id": own(i, step)}) for i, step in enumerate(steps))


def resolve_constraints_for_step(
    step: WorkflowStep, constraints: Iterable[Constraint]
) -> list[Constraint]:
    """Returns the constraints that a step's patterns match, in the step's order."""
    chosen = [each for each in constraints if step.selects(each)]
    if step.order == "definition":
        return chosen
    return sorted(chosen, key=lambda constraint: constraint.priority)
