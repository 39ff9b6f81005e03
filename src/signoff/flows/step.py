"""The steps of a flow: the four kinds, and the keys each kind has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, GetJsonSchemaHandler, Strict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from signoff.flows.sections import AgentName, FlowSection, Many, Word
from signoff.flows.state import Scope
from signoff.review.constraint import Constraint

NAME = r"^[A-Za-z0-9_-]+$"
NAME_WORDS = "letters, digits, _ and -"
POLICY_JUDGE = "policy"
"""The agent of an adjudicate step that costs nothing: the rules decide alone."""


class StepKind(StrEnum):
    """The four kinds of step."""

    GENERATE = "generate"
    CRITIQUE = "critique"
    ADJUDICATE = "adjudicate"
    REFINE = "refine"


Mode = Literal["edit", "rewrite", "apply"]
MODE: Any = Field(
    "edit",
    title="Edits a file, writes the whole text again, or applies literal edits first",
    description="one of: edit, rewrite, apply",
)
RETRIES = "How often an edit that changed nothing, or too much, is sent back"
SIZE_CHANGE = "By how much an edit may change the number of words"

PURPOSE: Mapping[StepKind, str] = {
    StepKind.GENERATE: "Writes the artifact",
    StepKind.CRITIQUE: "Reviews the artifact against constraints",
    StepKind.ADJUDICATE: "Decides about the findings",
    StepKind.REFINE: "Fixes the artifact",
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
}
"""The keys that not every kind of step has."""


def keys_of(kind: StepKind) -> tuple[str, ...]:
    """Returns the keys that a step of a kind may have in a file."""
    return _COMMON + _OWN[kind]


def owners(key: str) -> str:
    """Returns a sentence that names the kinds of step with a key; empty where there are none."""
    kinds = [kind.value for kind, keys in _OWN.items() if key in keys]
    return f"only {' and '.join(kinds)} steps have it" if kinds else ""


class WorkflowStep(FlowSection):
    """One step of a flow; keys of other kinds than its own keep their defaults."""

    step: Annotated[StepKind, Strict(False)] = Field(
        title="The kind of step", description=f"one of: {', '.join(StepKind)}"
    )
    name: str | None = Field(
        None, pattern=NAME, max_length=100, title="What loop_to calls it", description=NAME_WORDS
    )
    agent: AgentName | None = Field(
        None, title="Who does it; the default agent otherwise", description="an agent's name"
    )
    model: Word | None = Field(
        None, title="The model that agent uses", description="a model's name"
    )
    prompt: Literal["full", "brief"] = Field(
        "full",
        title="Everything an author should know, or the goal alone, for small models",
        description="one of: full, brief",
    )
    execution: Literal["parallel", "serial"] = Field(
        "parallel",
        title="All at once, or one after the other with an early end",
        description="one of: parallel, serial",
    )
    order: Literal["priority", "definition"] = Field(
        "priority",
        title="Which constraint comes first",
        description="one of: priority, definition",
    )
    constraints: Many[Word] | None = Field(
        None,
        title="Which constraints; all when it is absent",
        description='a list of patterns over constraint ids, as in ["style*"]',
    )
    scope: Scope = Field(
        "accumulated",
        title="Which critiques the judge sees",
        description="one of: accumulated, previous, all",
    )
    on_approved: Literal["finish", "continue"] | None = Field(
        None,
        title="What APPROVED does; by default the last judge finishes the run, others continue it",
        description="one of: finish, continue",
    )
    mode: Mode = MODE
    loop_to: str | None = Field(
        None,
        pattern=NAME,
        title="The earlier step where the next iteration begins",
        description="the name of an earlier step",
    )
    validation_retries: int = Field(
        0, ge=0, le=10, title=RETRIES, description="a whole number from 0 to 10"
    )
    max_size_change_pct: float | None = Field(
        None, gt=0, allow_inf_nan=False, title=SIZE_CHANGE, description="a percentage above 0"
    )
    on_invalid: Literal["continue", "escalate"] = Field(
        "continue",
        title="What happens with an edit that stays invalid: it is logged, or a human decides",
        description="one of: continue, escalate",
    )
    timeout: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        title="Seconds one call may take",
        description="a number of seconds above 0",
    )
    id: str = ""
    """The step's id in the graph, set by `with_ids`; no key of files."""

    from_dict: ClassVar[Callable[[Mapping[str, Any]], WorkflowStep]]
    """Reads one step as it is in YAML; `signoff.flows.reading`, which can read it, sets this."""

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
        reference = handler(schema)
        whole = handler.resolve_ref_schema(reference)
        kinds = [_schema_of(kind, whole["properties"]) for kind in StepKind]
        whole.clear()
        whole["oneOf"] = kinds
        return reference


def _schema_of(kind: StepKind, properties: Mapping[str, Any]) -> dict[str, Any]:
    constant = {"const": kind.value, "type": "string"}
    step = {**constant, "title": PURPOSE[kind], "description": kind.value}
    own = {key: properties[key] for key in keys_of(kind)}
    return {
        "type": "object",
        "description": f"{PURPOSE[kind]}.",
        "additionalProperties": False,
        "properties": {**own, "step": step},
        "required": ["step"],
    }


def with_ids(steps: Iterable[WorkflowStep]) -> tuple[WorkflowStep, ...]:
    """Gives each step its id: its name, else its kind, with its position where kinds repeat."""
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
