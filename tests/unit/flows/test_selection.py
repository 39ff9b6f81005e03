from itertools import product

import pytest

from signoff.flows.selection import resolve_constraints_for_step
from signoff.flows.step import StepKind, WorkflowStep
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


@pytest.mark.parametrize(("patterns", "order"), [*product(CHOSEN, ("priority", "definition"))])
def test_patterns_choose_and_the_order_sorts(patterns: tuple[str, ...] | None, order: str) -> None:
    """Each critique step reads exactly what its author named, in the order asked for."""
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
