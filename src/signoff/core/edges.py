"""Every edge from one step to another, with loops found and bounded.

A back edge is one that closes a cycle (found by a depth-first walk from the entry).
Each is counted, and one that declares no bound gets `DEFAULT_BOUND`, unless it begins a
round and rounds are limited. So every run ends: without its back edges a graph is
acyclic, and the last step in that order that is visited again and again can be left only
by back edges, whose counts never reset. An edge that grants a round is bounded itself, so
the limit of rounds grows only so far.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from signoff.core.errors import UnmappedOutcome
from signoff.core.outcome import End, Outcome
from signoff.core.step import Edge, StepDef

DEFAULT_BOUND = 20
"""How often a loop without a declared bound may be taken."""

ERROR = "error"
"""The name of the edge taken when a handler raises."""


@dataclass(frozen=True)
class ResolvedEdge:
    """One edge as the engine uses it; values that every step needs are computed once."""

    step: str
    name: str
    """The outcome's value, `error`, or `gate:LABEL`."""
    definition: Edge
    """The edge as its author declared it."""
    back: bool
    """Whether it closes a loop."""
    in_rounds: bool = False
    """Whether it starts a round and `max_iterations` limits those."""

    @property
    def to(self) -> str | End | None:
        """Where it leads."""
        return self.definition.to

    @cached_property
    def key(self) -> str:
        """The name of its counter, `step/name`, as journals store it."""
        return f"{self.step}/{self.name}"

    @cached_property
    def counted(self) -> bool:
        """Whether its traversals are counted: it closes a loop, has a bound, or grants a round."""
        edge = self.definition
        return self.back or edge.bound is not None or edge.grants_iteration

    @cached_property
    def bound(self) -> int | None:
        """How often it may be taken; None if only `max_iterations` limits it, or nothing does."""
        if self.definition.bound is not None:
            return self.definition.bound
        # What grants a round cannot be limited by the number of rounds.
        unlimited = self.definition.grants_iteration or (self.back and not self.in_rounds)
        return DEFAULT_BOUND if unlimited else None


class EdgeTable:
    """All edges of a workflow, looked up by step and name."""

    def __init__(self, edges: Sequence[ResolvedEdge]) -> None:
        self._by_name = {(edge.step, edge.name): edge for edge in edges}
        self._by_step: dict[str, list[ResolvedEdge]] = {}
        for edge in edges:
            self._by_step.setdefault(edge.step, []).append(edge)

        self.granting = tuple(edge.key for edge in edges if edge.definition.grants_iteration)
        """The counters of edges that each allow one more round."""

    def __iter__(self) -> Iterator[ResolvedEdge]:
        """Yields every edge, in definition order."""
        return iter(self._by_name.values())

    def find(self, step: str, outcome: Outcome) -> ResolvedEdge | None:
        """Returns where an outcome leads: its own edge, else the default one, else None."""
        own = self._by_name.get((step, outcome.value))
        return own or self._by_name.get((step, Outcome.DEFAULT.value))

    def need(self, step: str, outcome: Outcome) -> ResolvedEdge:
        """Returns where an outcome leads; raises `UnmappedOutcome` if it leads nowhere."""
        edge = self.find(step, outcome)
        if edge is None:
            names = ", ".join(edge.name for edge in self.from_step(step))
            raise UnmappedOutcome(
                f"step {step!r} ended with outcome {outcome.value!r}, which has no edge "
                f"(its edges: {names or 'none'})"
            )
        return edge

    def get(self, step: str, name: str) -> ResolvedEdge | None:
        """Returns a step's edge by name (`error`, `gate:LABEL`)."""
        return self._by_name.get((step, name))

    def from_step(self, step: str) -> Sequence[ResolvedEdge]:
        """Returns all edges out of a step."""
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
    """Returns the edges of a graph, with the back edges marked."""
    limited = max_iterations is not None
    edges = [
        ResolvedEdge(s.id, name, each, back=False, in_rounds=limited and each.starts_iteration)
        for s in steps
        for name, each in declared_edges(s)
    ]
    back_keys = _back_edges(EdgeTable(edges), entry)
    return EdgeTable([replace(edge, back=edge.key in back_keys) for edge in edges])


def _back_edges(table: EdgeTable, entry: str) -> set[str]:
    """Returns the keys of edges that lead to a step on the path to them, found depth first.

    The stack is explicit: a graph may have more steps than Python allows nested calls.
    """
    loops: set[str] = set()
    visited = {entry}
    path = [(entry, iter(table.from_step(entry)))]
    on_path = {entry}
    while path:
        step, rest = path[-1]
        if (leaving := next(rest, None)) is None:
            # Every edge of this step has been followed, so it is not on the path any more.
            path.pop()
            on_path.discard(step)
        elif isinstance(leaving.to, End) or leaving.to is None:
            continue
        elif leaving.to in on_path:
            loops.add(leaving.key)
        elif leaving.to not in visited:
            visited.add(leaving.to)
            on_path.add(leaving.to)
            path.append((leaving.to, iter(table.from_step(leaving.to))))
    return loops
