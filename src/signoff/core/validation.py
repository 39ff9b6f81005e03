"""Whole-definition checks, one small function per rule; all problems are reported.

Here are the rules about the graph; those about single fields are in `shape`, those about
handlers in `callables`.

A `StrEnum` end such as `End.REJECTED` is a string too, so rules about step ids always
look at `_step_target` and never at the raw edge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from signoff.core.callables import agreement_problems, handler_problems
from signoff.core.edges import declared_edges
from signoff.core.outcome import End, Outcome
from signoff.core.shape import in_shape
from signoff.core.spend import AMOUNT, Limits
from signoff.core.step import Edge, StepDef
from signoff.errors import Problem

Steps = Sequence[StepDef]


def problems_of(
    name: str,
    steps: Sequence[Any],
    entry: str,
    max_iterations: int | None = None,
    limits: Limits | None = None,
) -> list[Problem]:
    """Returns every problem of a definition; empty means it can run."""
    found = [*_settings_are_right(name, max_iterations, limits), *_steps_are_steps(steps)]
    mended = []
    for position, step in enumerate(steps, 1):
        if isinstance(step, StepDef):
            sound, problems = in_shape(step, position)
            mended.append(sound)
            found += problems
            if entry is step.id:
                entry = sound.id
    return found + [problem for rule in _RULES for problem in rule(mended, entry)]


def _settings_are_right(name: Any, max_iterations: Any, limits: Any) -> Iterator[Problem]:
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        yield Problem("workflow", f"name is {name!r:.80}", "a short name")
    if max_iterations is not None and not (
        isinstance(max_iterations, int) and max_iterations is not True and max_iterations >= 1
    ):
        yield Problem("workflow", f"max_iterations is {max_iterations!r}", "a whole number from 1")
    if isinstance(limits, Limits):
        for ceiling, value in limits.invalid().items():
            yield Problem("workflow", f"limits.{ceiling} is {value!r:.80}", AMOUNT)
    elif limits is not None:
        yield Problem("workflow", f"limits is {limits!r:.80}", "Limits(...)")


def _steps_are_steps(steps: Sequence[Any]) -> Iterator[Problem]:
    if not steps:
        yield Problem("workflow", "has no steps", "give it at least one StepDef")
    for position, step in enumerate(steps, 1):
        if not isinstance(step, StepDef):
            yield Problem(f"step {position}", f"is {step!r:.80}", "a StepDef(...)")


def _ids_are_unique(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step_id, count in Counter(str(s.id) for s in steps).items():
        if count > 1:
            what = f"is defined {count} times"
            yield Problem(f"step {step_id!r}", what, "give each its own id", step_id)


def _entry_exists(steps: Steps, entry: str) -> Iterator[Problem]:
    ids = [s.id for s in steps]
    if steps and entry not in ids:
        yield Problem(
            "entry_point", f"{entry!r} is not a step", f"one of: {', '.join(map(str, ids))}"
        )


def _outcome_keys_are_right(steps: Steps, _entry: str) -> Iterator[Problem]:
    outcomes = ", ".join(f"Outcome.{o.name}" for o in Outcome)
    for step in steps:
        for key in step.next:
            if not isinstance(key, Outcome):
                yield _of(step, f"next has the key {key!r}", f"use one of: {outcomes}")


def _targets_exist(steps: Steps, _entry: str) -> Iterator[Problem]:
    ids = {s.id for s in steps}
    for step in steps:
        for name, edge in declared_edges(step):
            target = _step_target(edge)
            if target is not None and target not in ids:
                yield _of(step, f"{name} leads to {target!r}, which is no step", _listed(ids))


def _some_step_ends(steps: Steps, _entry: str) -> Iterator[Problem]:
    ends = any(_step_target(e) is None for s in steps for _, e in declared_edges(s))
    if steps and not ends:
        yield Problem("workflow", "never ends", "let at least one outcome lead to None")


def _every_step_leads_on(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step in steps:
        if not step.next and step.gate is None:
            yield _of(step, "leads nowhere", "give it next={Outcome.OK: None} to end there")


def _all_are_reachable(steps: Steps, entry: str) -> Iterator[Problem]:
    targets: dict[str, set[str | None]] = {}
    for step in steps:
        targets.setdefault(step.id, set()).update(_step_target(e) for _, e in declared_edges(step))
    if entry not in list(targets):
        return
    seen, todo = {entry}, [entry]
    while todo:
        fresh = {t for t in targets.get(todo.pop(), ()) if t is not None} - seen
        seen |= fresh
        todo.extend(fresh)
    for step in steps:
        if step.id not in seen:
            yield _of(step, f"cannot be reached from {entry!r}", "lead an outcome to it")


def _handlers_can_be_called(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step in steps:
        yield from (replace(each, step=str(step.id)) for each in handler_problems(step))


def _parameters_agree(steps: Steps, _entry: str) -> Iterator[Problem]:
    yield from agreement_problems(steps)


def _gates_decide(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step in steps:
        if step.gate is None:
            continue
        labels = [o.label for o in step.gate.options]
        if not labels:
            yield _of(step, "gate has no options", "give it at least one GateOption")
        if len(set(labels)) != len(labels):
            yield _of(step, "gate has two options of one label", "give each its own label")
        if Outcome.OK in step.next:
            what = "has a gate, so next[Outcome.OK] is never taken"
            yield _of(step, what, "let an option of the gate lead there")


_RULES: tuple[Callable[[Steps, str], Iterator[Problem]], ...] = (
    _ids_are_unique,
    _entry_exists,
    _outcome_keys_are_right,
    _targets_exist,
    _some_step_ends,
    _every_step_leads_on,
    _all_are_reachable,
    _handlers_can_be_called,
    _parameters_agree,
    _gates_decide,
)


def _step_target(edge: Edge) -> str | None:
    return None if edge.to is None or isinstance(edge.to, End) else edge.to


def _of(step: StepDef, what: str, remedy: str) -> Problem:
    return Problem(f"step {step.id!r}", what, remedy, str(step.id))


def _listed(ids: set[str]) -> str:
    return f"steps: {', '.join(sorted(map(str, ids)))}"
