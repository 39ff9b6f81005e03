"""Who reads an artifact against a constraint, and which rule says so."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Protocol

from signoff.review.constraint import Constraint


class RoutingPattern(Protocol):
    """Sends constraints whose id matches a glob to some agents."""

    @property
    def match(self) -> str: ...
    @property
    def agents(self) -> tuple[str, ...]: ...


class PriorityRange(Protocol):
    """Sends constraints of some priorities, both ends included, to some agents."""

    @property
    def low(self) -> int: ...
    @property
    def high(self) -> int: ...
    @property
    def agents(self) -> tuple[str, ...]: ...


class Routing(Protocol):
    """What a flow says about routing."""

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
    """Returns who reads a constraint, each once, and what decided it; the first to say so does."""
    said = _said(step_agent, constraint, routing, default_agents)
    agents, by = next(((agents, by) for agents, by in said if agents), ((), "nobody is named"))
    return tuple(dict.fromkeys(agents)), by


def _said(
    step_agent: str | None,
    constraint: Constraint,
    routing: Routing,
    default_agents: Sequence[str],
) -> Iterator[tuple[Iterable[str], str]]:
    """Yields who is named at each level, the strongest first; nobody where it says nothing."""
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
