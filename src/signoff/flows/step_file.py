"""The four kinds of step as they may stand in a flow file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from signoff.documents.sections import Section
from signoff.flows.model import StepKind, WorkflowStep
from signoff.flows.sections import AgentName, Word

NAME = r"^[A-Za-z0-9_-]+$"
NAME_WORDS = "letters, digits, _ and -"


OF_KIND: Mapping[StepKind, frozenset[str]] = {
    StepKind.GENERATE: frozenset({"prompt"}),
    StepKind.CRITIQUE: frozenset({"execution", "order", "constraints"}),
    StepKind.ADJUDICATE: frozenset({"scope", "on_approved"}),
    StepKind.REFINE: frozenset(
        {"mode", "loop_to", "validation_retries", "max_size_change_pct", "on_invalid", "prompt"}
    ),
}
"""The fields that not every kind of step has."""


def owners(field: str) -> str:
    """Says which kinds of step have a field."""
    kinds = [kind.value for kind, names in OF_KIND.items() if field in names]
    return f"only {' and '.join(kinds)} steps have it"


def _of_others(own: StepKind) -> dict[str, str]:
    foreign = frozenset().union(*OF_KIND.values()) - OF_KIND[own]
    return {name: owners(name) for name in sorted(foreign)}


class _AnyStep(Section):
    step: str
    name: str | None = Field(
        None, pattern=NAME, max_length=100, title="What loop_to calls it", description=NAME_WORDS
    )
    agent: AgentName | None = Field(
        None, title="Who does it; the default agent otherwise", description="an agent's name"
    )
    model: Word | None = Field(
        None, title="The model that agent uses", description="a model's name"
    )
    timeout: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        title="Seconds one call may take",
        description="a number of seconds above 0",
    )


_PROMPT: Any = Field(
    "full",
    title="Everything an author should know, or the goal alone, for small models",
    description="one of: full, brief",
)


class GenerateStep(_AnyStep):
    """Makes the artifact."""

    misplaced_keys: ClassVar[Mapping[str, str]] = _of_others(StepKind.GENERATE)

    step: Literal["generate"] = Field(title="Makes the artifact", description="generate")
    prompt: Literal["full", "brief"] = _PROMPT


class CritiqueStep(_AnyStep):
    """Reviews the artifact against constraints."""

    misplaced_keys: ClassVar[Mapping[str, str]] = _of_others(StepKind.CRITIQUE)

    step: Literal["critique"] = Field(
        title="Reviews the artifact against constraints", description="critique"
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
    constraints: list[Word] | None = Field(
        None,
        title="Which constraints; all when it is absent",
        description='a list of patterns over constraint ids, as in ["style*"]',
    )


class AdjudicateStep(_AnyStep):
    """Decides about what was found."""

    misplaced_keys: ClassVar[Mapping[str, str]] = _of_others(StepKind.ADJUDICATE)

    step: Literal["adjudicate"] = Field(
        title="Decides about what was found", description="adjudicate"
    )
    scope: Literal["accumulated", "previous", "all"] = Field(
        "accumulated",
        title="Which critiques the judge sees",
        description="one of: accumulated, previous, all",
    )
    on_approved: Literal["finish", "continue"] | None = Field(
        None,
        title="What APPROVED does; the last judge finishes the run, others go on",
        description="one of: finish, continue",
    )


class RefineStep(_AnyStep):
    """Mends the artifact."""

    misplaced_keys: ClassVar[Mapping[str, str]] = _of_others(StepKind.REFINE)

    step: Literal["refine"] = Field(title="Mends the artifact", description="refine")
    mode: Literal["edit", "rewrite", "apply"] = Field(
        "edit",
        title="Edits a file, writes the whole anew, or applies literal edits first",
        description="one of: edit, rewrite, apply",
    )
    loop_to: str | None = Field(
        None,
        pattern=NAME,
        title="The earlier step where the next iteration begins",
        description="the name of an earlier step",
    )
    validation_retries: int = Field(
        0,
        ge=0,
        le=10,
        title="How often an edit that changed nothing, or too much, is sent back",
        description="a whole number from 0 to 10",
    )
    max_size_change_pct: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        title="By how much an edit may change the number of words",
        description="a percentage above 0",
    )
    on_invalid: Literal["continue", "escalate"] = Field(
        "continue",
        title="What happens with an edit that stays invalid",
        description="one of: continue, escalate",
    )
    prompt: Literal["full", "brief"] = _PROMPT


Step = Annotated[
    GenerateStep | CritiqueStep | AdjudicateStep | RefineStep,
    Field(
        discriminator="step",
        description="a mapping with step: generate, critique, adjudicate or refine",
    ),
]


def step_value(said: GenerateStep | CritiqueStep | AdjudicateStep | RefineStep) -> WorkflowStep:
    """Returns a step as a value, its id not yet given."""
    fields = said.model_dump(exclude={"step"})
    if fields.get("constraints") is not None:
        fields["constraints"] = tuple(fields["constraints"])
    return WorkflowStep(step=StepKind(said.step), **fields)


def with_ids(steps: Iterable[WorkflowStep]) -> tuple[WorkflowStep, ...]:
    """Gives every step its id: its name, else its kind, told apart by its position where needed."""
    steps = tuple(steps)
    names = {step.name for step in steps if step.name}
    unnamed = [step.step for step in steps if not step.name]

    def own(position: int, step: WorkflowStep) -> str:
        if step.name:
            return step.name
        alone = unnamed.count(step.step) == 1 and step.step.value not in names
        return step.step.value if alone else f"{step.step.value}_{position}"

    return tuple(replace(step, id=own(i, step)) for i, step in enumerate(steps))
