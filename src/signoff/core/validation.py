"""Whole-definition checks, one small function per rule; all problems are reported.

A `StrEnum` end such as `End.REJECTED` is a string too, so rules about step ids always
look at `_step_target` and never at the raw edge.
"""

from __future__ import annotations

import inspect
import typing
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from signoff.core.args import read_params
from signoff.core.edges import declared_edges
from signoff.core.outcome import End, Outcome
from signoff.core.step import Condition, Dispatch, Edge, StepDef
from signoff.errors import Problem

Steps = Sequence[StepDef]


def problems_of(
    name: str, steps: Sequence[Any], entry: str, max_iterations: int | None
) -> list[Problem]:
    """Returns every problem of a definition; empty means it can run."""
    shape = [*_name_is_usable(name), *_steps_are_steps(steps), *_rounds(max_iterations)]
    real = [s for s in steps if isinstance(s, StepDef)]
    found = [problem for rule in _RULES for problem in rule(real, entry)]
    return [*shape, *found]


def _name_is_usable(name: Any) -> Iterator[Problem]:
    if not isinstance(name, str) or not name.strip():
        yield Problem("workflow", "has no name", "give it a non-empty name")


def _steps_are_steps(steps: Sequence[Any]) -> Iterator[Problem]:
    if not steps:
        yield Problem("workflow", "has no steps", "give it at least one StepDef")
    for position, step in enumerate(steps, 1):
        if not isinstance(step, StepDef):
            yield Problem(f"step {position}", f"is {type(step).__name__}, not a StepDef")


def _rounds(max_iterations: int | None) -> Iterator[Problem]:
    if max_iterations is not None and (not isinstance(max_iterations, int) or max_iterations < 1):
        yield Problem("max_iterations", f"is {max_iterations!r}", "a whole number from 1")


def _ids_are_usable(steps: Steps, _entry: str) -> Iterator[Problem]:
    for position, step in enumerate(steps, 1):
        if not isinstance(step.id, str) or not step.id.strip():
            yield Problem(f"step {position}", f"has no usable id ({step.id!r})", "use a short name")


def _ids_are_unique(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step_id, count in Counter(str(s.id) for s in steps).items():
        if count > 1:
            yield Problem(f"step {step_id!r}", f"is defined {count} times", "give each its own id")


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
                yield Problem(_at(step), f"next has the key {key!r}", f"use one of: {outcomes}")


def _targets_exist(steps: Steps, _entry: str) -> Iterator[Problem]:
    ids = {s.id for s in steps}
    for step in steps:
        for name, edge in declared_edges(step):
            target = _step_target(edge)
            if target is not None and target not in ids:
                yield Problem(
                    _at(step), f"{name} leads to {target!r}, which is no step", _listed(ids)
                )


def _some_step_ends(steps: Steps, _entry: str) -> Iterator[Problem]:
    ends = any(_step_target(e) is None for s in steps for _, e in declared_edges(s))
    if steps and not ends:
        yield Problem("workflow", "never ends", "let at least one outcome lead to None")


def _every_step_leads_on(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step in steps:
        if not step.next and (step.gate is None or not step.gate.options):
            yield Problem(
                _at(step), "leads nowhere", "give it next={Outcome.OK: None} to end there"
            )


def _all_are_reachable(steps: Steps, entry: str) -> Iterator[Problem]:
    targets = {s.id: {_step_target(e) for _, e in declared_edges(s)} for s in steps}
    if entry not in targets:
        return
    seen, todo = {entry}, [entry]
    while todo:
        fresh = {t for t in targets.get(todo.pop(), ()) if t is not None} - seen
        seen |= fresh
        todo.extend(fresh)
    for step in steps:
        if step.id not in seen:
            yield Problem(_at(step), f"cannot be reached from {entry!r}", "lead an outcome to it")


def _bounds_are_positive(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step in steps:
        for name, edge in declared_edges(step):
            if edge.bound is not None and (not isinstance(edge.bound, int) or edge.bound < 1):
                yield Problem(_at(step), f"{name} has the bound {edge.bound!r}", "at least 1")
            if edge.on_limit not in ("end", "ask"):
                yield Problem(_at(step), f"{name} has on_limit {edge.on_limit!r}", "end or ask")


def _numbers_are_right(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step in steps:
        if not isinstance(step.retries, int) or step.retries < 0:
            yield Problem(_at(step), f"retries is {step.retries!r}", "a whole number from 0")
        if step.timeout is not None and not step.timeout > 0:
            yield Problem(_at(step), f"timeout is {step.timeout!r}", "seconds, more than 0")


def _handlers_are_callable(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step in steps:
        handler = step.handler
        if handler is None or isinstance(handler, Dispatch):
            continue
        if not callable(handler):
            yield Problem(
                _at(step),
                f"handler is {type(handler).__name__}",
                "a function (ctx) -> (Outcome, dict), a Dispatch, or None",
            )
            continue
        yield from _signature_fits(step, handler)


def _signature_fits(step: StepDef, handler: Callable[..., Any]) -> Iterator[Problem]:
    try:
        parameters = list(inspect.signature(handler).parameters.values())
    except (TypeError, ValueError):
        yield Problem(_at(step), "handler has no readable signature", "use a Python function")
        return
    if not parameters or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
        yield Problem(_at(step), "handler takes no context", "its first parameter must be ctx")
        return
    returned = typing.get_origin(getattr(handler, "__annotations__", {}).get("return"))
    if returned is not None and returned not in (tuple,) and not _is_awaitable(returned):
        yield Problem(_at(step), "handler is annotated to return something else than a tuple")
    for param in read_params(handler).values():
        if (
            param.arg.min is not None
            and param.arg.max is not None
            and param.arg.min > param.arg.max
        ):
            yield Problem(_at(step), f"parameter {param.name!r} has min above max")


def _is_awaitable(kind: Any) -> bool:
    return isinstance(kind, type) and hasattr(kind, "__await__")


def _conditions_are_conditions(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step in steps:
        for kind, listed in (("pre", step.preconditions), ("post", step.postconditions)):
            for condition in listed:
                if not isinstance(condition, Condition) or not callable(condition.check):
                    yield Problem(
                        _at(step),
                        f"a {kind}condition is not a Condition",
                        "Condition(name, check, error)",
                    )


def _gates_have_options(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step in steps:
        if step.gate is None:
            continue
        labels = [o.label for o in step.gate.options]
        if not labels:
            yield Problem(_at(step), "gate has no options", "give it at least one GateOption")
        if len(set(labels)) != len(labels):
            yield Problem(_at(step), "gate has two options of one label", "give each its own label")


_RULES: tuple[Callable[[Steps, str], Iterator[Problem]], ...] = (
    _ids_are_usable,
    _ids_are_unique,
    _entry_exists,
    _outcome_keys_are_right,
    _targets_exist,
    _some_step_ends,
    _every_step_leads_on,
    _all_are_reachable,
    _bounds_are_positive,
    _numbers_are_right,
    _handlers_are_callable,
    _conditions_are_conditions,
    _gates_have_options,
)


def _step_target(edge: Edge) -> str | None:
    return None if edge.to is None or isinstance(edge.to, End) else edge.to


def _at(step: StepDef) -> str:
    return f"step {step.id!r}"


def _listed(ids: set[str]) -> str:
    return f"steps: {', '.join(sorted(map(str, ids)))}"
