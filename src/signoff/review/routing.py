"""Selects the agents that review a constraint, and says which rule selected them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Protocol

from signoff.review.constraint import Constraint

NO_AGENT = "no agent is named"


class RoutingPattern(Protocol):
    """Assigns agents to constraints whose id matches a glob."""

    @property
    def match(self) -> str: ...
    @property
    def agents(self) -> tuple[str, ...]: ...


class PriorityRange(Protocol):
    """Assigns agents to constraints in a range of priorities, both ends included."""

    @property
    def low(self) -> int: ...
    @property
    def high(self) -> int: ...
    @property
    def agents(self) -> tuple[str, ...]: ...


class Routing(Protocol):
    """The routing configuration of a flow."""

    @property
    def default_agents(self) -> tuple[str, ...]: ...
    @property
    def rules(self) -> Sequence[RoutingPattern]: ...
    @property
    def priority_routing(self) -> Sequence[PriorityRange]: ...


def select_reviewers(
    step_agent: str | None,
    constraint: Constraint,
    routing: Routing,
    default_agents: Sequence[str],
) -> tuple[tuple[str, ...], str]:
    """Returns the agents that review a constraint, and the rule that named them."""
    levels = _levels(step_agent, constraint, routing, default_agents)
    agents, rule = next(((agents, rule) for agents, rule in levels if agents), ((), NO_AGENT))
    return tuple(dict.fromkeys(agents)), rule


def _levels(
    step_agent: str | None,
    constraint: Constraint,
    routing: Routing,
    default_agents: Sequence[str],
) -> Iterator[tuple[Iterable[str], str]]:
    """Yields the agents that each level names, the strongest first; empty if it names none."""
    yield (step_agent,) if step_agent else (), "the step's agent"
    yield constraint.agents or (), "the constraint's own agents"
    for rule in routing.rules:
        if fnmatchcase(constraint.id, rule.match):
            yield rule.agents, f"the routing rule {rule.match!r}"
    for span in routing.priority_routing:
        if span.low <= constraint.priority <= span.high:
            yield span.agents, f"the routing of priorities {span.low} to {span.high}"
    yield routing.default_agents, "default_agents of the routing"
    yield default_agents, "the default agent"
