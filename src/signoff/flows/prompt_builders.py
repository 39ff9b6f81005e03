"""The prompts of the four roles and the critiques in a judge's scope, for programs.

Each prompt is a text with a `system` prompt, which names the agent's role. The steps of a flow use
the functions of `signoff.review.prompts`, which take more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from signoff.core.effects import ProductPrompt
from signoff.core.severity import DEFAULT_BLOCK_ON, Severity
from signoff.flows.model import Scope
from signoff.flows.sections import Goal
from signoff.flows.state import critiques_in_scope, read
from signoff.review.constraint import Constraint
from signoff.review.critique import Adjudication, Critique
from signoff.review.prompts import (
    adjudicator_prompt,
    critic_prompt,
    generator_prompt,
    refinement_prompt,
)


def build_generator_prompt(
    goal: Goal | str,
    constraints: Sequence[Constraint] = (),
    *,
    sources: str = "",
    previous: str = "",
    adjudication: Adjudication | None = None,
    iteration: int = 1,
) -> ProductPrompt:
    """Returns the prompt for an author; later rounds have the previous text and a verdict."""
    later = iteration > 1
    return generator_prompt(
        goal=_text(goal),
        sources=sources,
        constraints=constraints,
        previous=previous if later else "",
        bill_of_work=adjudication.bill_of_work if adjudication and later else "",
        iteration=iteration,
    )


def build_critic_prompt(
    constraint: Constraint, artifact: str, goal: Goal | str, *, sources: str = ""
) -> ProductPrompt:
    """Returns the prompt for a critic of an artifact against one constraint."""
    return critic_prompt(
        goal=_text(goal), artifact=artifact, constraint=constraint, sources=sources
    )


def build_adjudicator_prompt(
    artifact: str,
    critiques: Sequence[Critique],
    constraints: Sequence[Constraint],
    goal: Goal | str,
    *,
    block_on: Iterable[Severity] = DEFAULT_BLOCK_ON,
) -> ProductPrompt:
    """Returns the prompt for a judge of some critiques."""
    return adjudicator_prompt(
        goal=_text(goal),
        artifact=artifact,
        constraints=constraints,
        critiques=critiques,
        block_on=block_on,
    )


def build_refinement_prompt(
    adjudication: Adjudication,
    goal: Goal | str,
    *,
    filename: str = "artifact.md",
    constraints: Sequence[Constraint] = (),
) -> ProductPrompt:
    """Returns the prompt for an agent that edits the artifact's file as a verdict demands."""
    return refinement_prompt(
        filename=filename,
        bill_of_work=adjudication.bill_of_work,
        goal=_text(goal),
        constraints=constraints,
    )


def get_critiques_for_scope(
    state: Mapping[str, Any], scope: Scope = "accumulated"
) -> list[Critique]:
    """Returns the critiques that a judge of a scope sees, from the state of a flow's run."""
    return read(critiques_in_scope(state, scope))


def _text(goal: Goal | str) -> str:
    return goal if isinstance(goal, str) else goal.text
