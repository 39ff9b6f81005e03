"""What evaluating one step by hand returns, with the next step and its parameters as data.

Nothing here is a command: a surface turns a `NextCommand` into whatever its users type or click.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from signoff.core.args import BoundedInt, Param
from signoff.core.outcome import End, Outcome
from signoff.core.step import ITERATION, HandlerObject

if TYPE_CHECKING:
    from signoff.core.workflow import Workflow


@dataclass(frozen=True)
class NextCommand:
    """The step to evaluate next, and what to evaluate it with."""

    workflow: str
    step: str
    number: int
    """The step's place in the order of the steps, from 1."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that were given and that the step, or one after it, takes."""
    open: Mapping[str, Param] = field(default_factory=dict)
    """Parameters whose values are still to be filled in."""


@dataclass(frozen=True)
class StepOutput:
    """The result of evaluating one step by hand."""

    step: str
    title: str
    actions: tuple[str, ...]
    outcome: Outcome | None
    """None if a sub-agent decides it."""
    state: dict[str, Any]
    next: str | None
    """The next step; None at the end, or if a sub-agent decides."""
    dispatch: HandlerObject | None = None
    """What to hand to a sub-agent, if the step is dispatched to one."""
    next_command: NextCommand | None = None
    """How to evaluate the next step; None where `next` is."""
    next_commands: Mapping[Outcome, NextCommand | None] = field(default_factory=dict)
    """For a dispatched step, how to continue after each outcome; None where the run would end."""


def next_command(
    workflow: Workflow, step: str, outcome: Outcome, given: Mapping[str, Any]
) -> NextCommand | None:
    """Returns how to continue after an outcome; None at the end. `given` are parameters so far."""
    edge = workflow.edges.find(step, outcome)
    return command_to(workflow, step, edge.to, given) if edge is not None else None


def command_to(
    workflow: Workflow, step: str, to: str | End | None, given: Mapping[str, Any]
) -> NextCommand | None:
    """Returns how to continue from a step where an edge leads; None at the end."""
    if to is None or isinstance(to, End):
        return None
    own = {**workflow.params[to], **(reported(workflow, to) if to == step else {})}
    # Before a step is repeated, its work is done again, which may change what it is called with.
    again = to == step
    taken = _taken_from(workflow, to)
    known = {n: v for n, v in given.items() if taken(n) and not (again and n in own)}
    known |= _next_round(own, given) if again else {}
    missing = {
        n: each
        for n, each in own.items()
        if n not in known and (again or (each.required and n not in given))
    }
    number = list(workflow.steps).index(to) + 1
    return NextCommand(
        workflow.name, to, number, MappingProxyType(known), MappingProxyType(missing)
    )


def reported(workflow: Workflow, step: str) -> dict[str, Param]:
    """Returns the parameters that the handler of a step only reads from its context.

    Before a step is repeated they are asked for again; other steps are not asked for them.
    """
    return {name: Param(name, str, default=None) for name in workflow.reads.get(step, ())}


def _next_round(own: Mapping[str, Param], given: Mapping[str, Any]) -> dict[str, int]:
    """Returns the next round of a step that repeats and takes the round, up to its bound."""
    domain = own[ITERATION].domain() if ITERATION in own else None
    if not isinstance(domain, BoundedInt):
        return {}
    following = given.get(ITERATION, domain.lo) + 1
    return {ITERATION: following} if following <= domain.hi else {}


def _taken_from(workflow: Workflow, step: str) -> Callable[[str], bool]:
    """Returns a function that tells whether a step, or one after it, may use a parameter."""
    declared = {name for each in _reachable(workflow, step) for name in workflow.params[each]}
    anywhere = {name for own in workflow.params.values() for name in own}
    # Handlers read any other parameter from their context, so every step may use it.
    return lambda name: name in declared or name not in anywhere or name in workflow.input_params


def _reachable(workflow: Workflow, start: str) -> set[str]:
    found, remaining = {start}, [start]
    while remaining:
        targets = {str(edge.to) for edge in workflow.edges.from_step(remaining.pop())}
        fresh = (targets & workflow.steps.keys()) - found
        found |= fresh
        remaining.extend(fresh)
    return found
