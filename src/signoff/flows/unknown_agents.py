"""Finds agents a flow names and nobody knows, before anybody else was paid."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sequence

from signoff.documents.mistakes import Mistake, format_path
from signoff.flows.model import GenflowConfig
from signoff.flows.step import POLICY_JUDGE
from signoff.review.constraint import Constraint

Place = tuple[str | int, ...]


def unknown_agents(
    config: GenflowConfig, constraints: Sequence[Constraint], known: Collection[str] | None
) -> list[Mistake]:
    """Returns every name that is no agent's and no role's; None knows everybody."""
    if known is None:
        return []
    return [
        Mistake(path, f"{what} {agent!r}, and no agent or role is called so", _remedy(agent, known))
        for path, what, agent in _named(config, constraints)
        if agent not in known and agent != POLICY_JUDGE
    ]


def _named(
    config: GenflowConfig, constraints: Sequence[Constraint]
) -> Iterator[tuple[Place, str, str]]:
    for position, step in enumerate(config.workflow):
        if step.agent is not None:
            path: Place = ("workflow", position, "agent")
            yield path, f"{format_path(path)} is", step.agent
    routing = config.constraints.routing
    groups: list[tuple[Place, tuple[str, ...]]] = [(("default_agents",), routing.default_agents)]
    groups += [(("rules", n), rule.agents) for n, rule in enumerate(routing.rules)]
    groups += [(("priority_routing", n), r.agents) for n, r in enumerate(routing.priority_routing)]
    for place, agents in groups:
        path = ("constraints", "routing", *place)
        yield from ((path, f"{format_path(path)} names", agent) for agent in agents)
    for constraint in constraints:
        said = f"the constraint {constraint.id!r} names"
        yield from ((("constraints",), said, agent) for agent in constraint.agents or ())


def _remedy(agent: str, known: Collection[str]) -> str:
    close = difflib.get_close_matches(agent, known, n=1)
    meant = f"did you mean {close[0]!r}? " if close else ""
    return (
        f"{meant}there is: {', '.join(sorted(known))}; others stand under agents: in the settings"
    )
