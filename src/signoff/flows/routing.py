"""Selects the agents that review a constraint, and says which rule selected them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase

from signoff.flows.sections import RoutingConfig
from signoff.review.constraint import Constraint

NO_AGENT = "no agent is named"


def select_reviewers(
    step_agent: str | None,
    constraint: Constraint,
    routing: RoutingConfig,
    default_agents: Sequence[str],
) -> tuple[tuple[str, ...], str]:
    """Returns the agents that review a constraint, and the rule that named them."""
    levels = _levels(step_agent, constraint, routing, default_agents)
    agents, rule = next(((agents, rule) for agents, rule in levels if agents), ((), NO_AGENT))
    return tuple(dict.fromkeys(agents)), rule


def _levels(
    step_agent: str | None,
    constraint: Constraint,
    routing: RoutingConfig,
    default_agents: Sequence[str],
) -> Iterator[tuple[Iterable[str], str]]:
    """Yields the agents that each level names, the strongest first; empty if it names none."""
    yield (step_agent,) if step_agent else (), "the step's agent"
    yield constraint.agents or (), "the constraint's own agents"
    for rule in routing.rules:
        if fnmatchcase(constraint.id, rule.match):
            yield rule.agents, f"the routing rule {rule.match!r}"
    for route in routing.priority_routing:
        if route.low <= constraint.priority <= route.high:
            yield route.agents, f"the routing of priorities {route.low} to {route.high}"
    yield routing.default_agents, "default_agents of the routing"
    yield default_agents, "the default agent"
