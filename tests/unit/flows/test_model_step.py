from itertools import product

import pytest

from signoff.flows.model import (
    StepKind,
    WorkflowStep,
    resolve_constraints_for_step,
    with_ids,
)
from signoff.review.constraint import Constraint

DEFINED = [
    Constraint("style-long", priority=3),
    Constraint("security", priority=1),
    Constraint("style", priority=3),
    Constraint("Tone", priority=2),
]
CHOSEN: dict[tuple[str, ...] | None, str] = {
    None: "style-long security style Tone",
    (): "",
    ("style*",): "style-long style",
    ("style",): "style",
    ("s*", "style"): "style-long security style",
    ("*",): "style-long security style Tone",
    ("tone",): "",
    ("[ST]*", "security"): "security Tone",
    ("nothing*",): "",
}


@pytest.mark.parametrize(
    ("steps", "ids"),
    [
        ("generate critique adjudicate refine", "generate critique adjudicate refine"),
        ("generate critique critique", "generate critique_1 critique_2"),
        ("generate critique:a critique", "generate a critique"),
        ("generate adjudicate:critique critique", "generate critique critique_2"),
        ("generate:draft critique:a critique:b", "draft a b"),
    ],
)
def test_a_step_is_named_by_its_name_or_by_its_kind(steps: str, ids: str) -> None:
    """Files, logs and `loop_to` use these names; short ones where they are clear."""
    built = []
    for each in steps.split():
        kind, _, name = each.partition(":")
        built.append(WorkflowStep(step=StepKind(kind), name=name or None))

    assert [step.id for step in with_ids(built)] == ids.split()


@pytest.mark.parametrize(("patterns", "order"), [*product(CHOSEN, ("priority", "definition"))])
def test_patterns_select_and_the_order_sorts(patterns: tuple[str, ...] | None, order: str) -> None:
    """Each critique step reviews exactly the constraints that it names, in its order."""
    step = WorkflowStep(
        step=StepKind.CRITIQUE,
        constraints=patterns,
        order="priority" if order == "priority" else "definition",
    )

    chosen = resolve_constraints_for_step(step, DEFINED)

    ids = CHOSEN[patterns].split()
    if order == "priority":
        # Equal priorities keep the order of definition.
        ids = [name for name in "security Tone style-long style".split() if name in ids]
    assert [constraint.id for constraint in chosen] == ids
