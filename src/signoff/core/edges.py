"""Every way from one step to another, with loops found and bounded.

A back edge is one that closes a cycle (found by a depth-first walk from the entry).
Each is counted, and one that declares no bound gets `DEFAULT_BOUND`, unless it begins a
round and rounds are limited. So every run ends: without its back edges a graph is
acyclic, and the last step in that order that is visited again and again can be left only
by back edges, whose counts never reset.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from signoff.core.outcome import End, Outcome
from signoff.core.step import Edge, StepDef

DEFAULT_BOUND = 20
"""Times a loop without a declared bound may go round."""

ERROR = "error"
"""The name of the edge taken when a handler raises."""


@dataclass(frozen=True)
class ResolvedEdge:
    """One edge as the engine uses it; what every step asks of it is worked out once."""

    step: str
    name: str
    """The outcome's value, `error`, or `gate:LABEL`."""
    edge: Edge
    back: bool
    """Whether it closes a loop."""
    in_rounds: bool = False
    """Whether the limit on rounds bounds it: it begins the next one, and they are limited."""

    @property
    def to(self) -> str | End | None:
        """Where it leads."""
        return self.edge.to

    @cached_property
    def key(self) -> str:
        """Names its counter."""
        return f"{self.step}/{self.name}"

    @cached_property
    def counted(self) -> bool:
        """Whether each time it is taken counts: it closes a loop, or its author bounded it."""
        return self.back or self.edge.bound is not None

    @cached_property
    def bound(self) -> int | None:
        """How often it may be taken; None when nothing but the limit on rounds says so."""
        if self.edge.bound is None and self.back and not self.in_rounds:
            return DEFAULT_BOUND
        return self.edge.bound


class EdgeTable:
    """All ways of a workflow, looked up by step and name."""

    def __init__(self, ways: Sequence[ResolvedEdge]) -> None:
        self._ways = {(w.step, w.name): w for w in ways}
        self._by_step: dict[str, list[ResolvedEdge]] = {}
        for way in ways:
            self._by_step.setdefault(way.step, []).append(way)

    def __iter__(self) -> Iterator[ResolvedEdge]:
        """Yields every way, in definition order."""
        return iter(self._ways.values())

    def find(self, step: str, outcome: Outcome) -> ResolvedEdge | None:
        """Returns where an outcome leads: its own edge, else the default one, else None."""
        own = self._ways.get((step, outcome.value))
        return own or self._ways.get((step, Outcome.DEFAULT.value))

    def get(self, step: str, name: str) -> ResolvedEdge | None:
        """Returns a step's edge by name (`error`, `gate:LABEL`)."""
        return self._ways.get((step, name))

    def from_step(self, step: str) -> Sequence[ResolvedEdge]:
        """Returns all ways out of a step."""
        return self._by_step.get(step, ())


def gate_name(label: str) -> str:
    """Names the edge of a gate's option."""
    return f"gate:{label}"


def declared_edges(step: StepDef) -> Iterator[tuple[str, Edge]]:
    """Yields a step's edges as the author wrote them, by name."""
    for outcome, target in step.next.items():
        yield getattr(outcome, "value", str(outcome)), as_edge(target)
    if step.on_error is not None:
        yield ERROR, Edge(step.on_error)
    if step.gate is not None:
        for option in step.gate.options:
            yield gate_name(option.label), as_edge(option.next)


def as_edge(target: str | End | Edge | None) -> Edge:
    """Returns a target in its full form."""
    return target if isinstance(target, Edge) else Edge(target)


def edge_table(
    steps: Sequence[StepDef], entry: str, max_iterations: int | None = None
) -> EdgeTable:
    """Finds every way of a graph and marks the ones that loop."""
    limited = max_iterations is not None
    ways = [
        ResolvedEdge(s.id, name, edge, back=False, in_rounds=limited and edge.starts_iteration)
        for s in steps
        for name, edge in declared_edges(s)
    ]
    loops = _back_edges(ways, entry)
    return EdgeTable([replace(w, back=w.key in loops) for w in ways])


def _back_edges(ways: Sequence[ResolvedEdge], entry: str) -> set[str]:
    """Walks depth first, without recursion; an edge to a step still on the path loops."""
    out: dict[str, list[ResolvedEdge]] = {}
    for each in ways:
        out.setdefault(each.step, []).append(each)
    found: set[str] = set()
    seen = {entry}
    path = [(entry, iter(out.get(entry, ())))]
    on_path = {entry}
    while path:
        step, rest = path[-1]
        if (way := next(rest, None)) is None:
            path.pop()
            on_path.discard(step)
        elif isinstance(way.to, End) or way.to is None:
            continue
        elif way.to in on_path:
            found.add(way.key)
        elif way.to not in seen:
            seen.add(way.to)
            on_path.add(way.to)
            path.append((way.to, iter(out.get(way.to, ()))))
    return found
