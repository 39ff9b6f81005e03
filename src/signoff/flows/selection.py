"""Which constraints a critique step reads the artifact against, and in which order."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from signoff.flows.step import WorkflowStep
from signoff.review.constraint import Constraint


def resolve_constraints_for_step(
    step: WorkflowStep, constraints: Iterable[Constraint]
) -> list[Constraint]:
    """Returns the constraints whose ids a step's patterns match, as the step orders them."""
    chosen = [each for each in constraints if selects(step, each)]
    if step.order == "definition":
        return chosen
    return sorted(chosen, key=lambda constraint: constraint.priority)


def selects(step: WorkflowStep, constraint: Constraint) -> bool:
    """Tells whether a step reviews a constraint."""
    if step.constraints is None:
        return True
    return any(fnmatchcase(constraint.id, pattern) for pattern in step.constraints)
