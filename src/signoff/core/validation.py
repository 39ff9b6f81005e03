"""Checks a whole definition, one small function per rule; all problems are reported.

First the fields of each step are checked, because authors may not use a type checker. Then come
the rules about the graph and the handlers, which rely on fields of the right types.

An end such as `End.REJECTED` is a string too, so rules about step ids always look at
`_step_target` and never at the raw edge.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from signoff.core.args import Param, fit, read_params
from signoff.core.code import EMPTY, function_of
from signoff.core.edges import as_edge, declared_edges
from signoff.core.errors import Problem
from signoff.core.outcome import End, Outcome
from signoff.core.spend import AMOUNT, Limits
from signoff.core.step import Condition, Edge, Gate, GateOption, HandlerObject, StepDef

Steps = Sequence[StepDef]

_BOUND = "a whole number from 1"


def problems_of(
    name: str,
    steps: Sequence[Any],
    entry: str,
    max_iterations: int | None = None,
    limits: Limits | None = None,
) -> list[Problem]:
    """Returns every problem of a definition; empty means it can run.

    The rules about the graph need fields of the right types, so they follow once these are right.
    """
    found = [_problem("workflow", each) for each in _of_workflow(name, max_iterations, limits)]
    if not steps:
        found.append(Problem("workflow", "has no steps", "give it at least one StepDef"))
    for position, step in enumerate(steps, 1):
        if not isinstance(step, StepDef):
            found.append(Problem(f"step {position}", f"is {step!r:.80}", "a StepDef(...)"))
            continue
        where = f"step {step.id!r}" if _is_name(step.id) else f"step {position}"
        found += [_problem(where, each, str(step.id)) for each in _of_fields(step)]
    return found or [*_rule_problems(steps, entry)]


def _rule_problems(steps: Steps, entry: str) -> Iterator[Problem]:
    for rule in _GRAPH_RULES:
        yield from rule(steps, entry)
    for step in steps:
        for step_rule in _STEP_RULES:
            yield from (_of(step, what, remedy) for what, remedy in step_rule(step))


Misfit = tuple[str, object, str]
"""The name of a field, its value, and what would be right."""


def _problem(where: str, misfit: Misfit, step: str = "") -> Problem:
    name, value, remedy = misfit
    return Problem(where, f"{name} is {value!r:.80}", remedy, step)


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip()) and value.isprintable()


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_bound(value: Any) -> bool:
    return value is None or _is_whole(value, 1)


def _is_timeout(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return value is None or (number and value > 0)


_FIELDS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "id": (_is_name, "a short name"),
    "title": (lambda value: isinstance(value, str), "a text"),
    "phase": (lambda value: isinstance(value, str), "a text"),
    "on_error": (lambda value: value is None or isinstance(value, str), "a step's id"),
    "retries": (lambda value: _is_whole(value, 0), "a whole number from 0"),
    "timeout": (_is_timeout, "seconds, more than 0"),
    "next": (lambda value: isinstance(value, Mapping), "a dict such as {Outcome.OK: 'publish'}"),
    "gate": (lambda value: value is None or isinstance(value, Gate), "a Gate(prompt, options)"),
    "edits": (lambda value: isinstance(value, bool), "True or False"),
}
"""The fields of a step whose value is right or wrong as a whole, and what is valid there."""


def _of_workflow(name: Any, max_iterations: Any, limits: Any) -> Iterator[Misfit]:
    if not _is_name(name):
        yield "name", name, "a short name"
    if not _is_bound(max_iterations):
        yield "max_iterations", max_iterations, _BOUND
    if limits is not None:
        yield from _of_limits(limits)


def _of_fields(step: StepDef) -> Iterator[Misfit]:
    for name, (fits, remedy) in _FIELDS.items():
        if not fits(value := getattr(step, name)):
            yield name, value, remedy
    yield from _of_limits(step.limits)
    yield from _of_list("actions", step.actions, object, "a list of instructions")
    for name in ("preconditions", "postconditions"):
        yield from _of_conditions(name, getattr(step, name))
    if isinstance(step.next, Mapping):
        for key, target in step.next.items():
            yield from _of_target(f"next[{getattr(key, 'value', key)!r}]", target)
    if isinstance(step.gate, Gate):
        yield from _of_gate(step.gate)


def _of_limits(limits: Any) -> Iterator[Misfit]:
    if not isinstance(limits, Limits):
        yield "limits", limits, "Limits(...)"
        return
    for name, value in limits.invalid().items():
        yield f"limits.{name}", value, AMOUNT


def _of_list(name: str, value: Any, kind: type, remedy: str) -> Iterator[Misfit]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        yield name, value, remedy
        return
    for each in value:
        if not isinstance(each, kind):
            yield f"an entry of {name}", each, remedy


def _of_conditions(name: str, value: Any) -> Iterator[Misfit]:
    yield from _of_list(name, value, Condition, "a list of Condition(name, check, error)")
    for each in value if isinstance(value, Sequence) else ():
        if isinstance(each, Condition) and not callable(each.check):
            yield f"the check of {each.name!r}", each.check, "a function"


def _of_gate(gate: Gate) -> Iterator[Misfit]:
    if not isinstance(gate.prompt, str) or not gate.prompt.strip():
        yield "the gate's prompt", gate.prompt, "what the human is asked"
    yield from _of_list("the gate's options", gate.options, GateOption, "a list of options")
    for option in gate.options if isinstance(gate.options, Sequence) else ():
        if isinstance(option, GateOption):
            if not _is_name(option.label):
                yield "the label of a gate's option", option.label, "a short name"
            yield from _of_target(f"option {option.label!r}", option.next)
    yield from _of_list("the gate's context", gate.context, str, "a list of names")


def _of_target(name: str, target: Any) -> Iterator[Misfit]:
    edge = as_edge(target)
    if edge.to is not None and not isinstance(edge.to, str):
        yield name, edge.to, "a step's id, an End, an Edge, or None"
    if not _is_bound(edge.bound):
        yield f"the bound of {name}", edge.bound, _BOUND
    if edge.on_limit not in ("end", "ask"):
        yield f"on_limit of {name}", edge.on_limit, "'end' or 'ask'"


def _ids_are_unique(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step_id, count in Counter(s.id for s in steps).items():
        if count > 1:
            what = f"is defined {count} times"
            yield Problem(f"step {step_id!r}", what, "give each its own id", step_id)


def _entry_exists(steps: Steps, entry: str) -> Iterator[Problem]:
    ids = [s.id for s in steps]
    if entry not in ids:
        yield Problem("entry_point", f"{entry!r} is not a step", f"one of: {', '.join(ids)}")


def _targets_exist(steps: Steps, _entry: str) -> Iterator[Problem]:
    ids = {s.id for s in steps}
    listed = ", ".join(sorted(ids))
    for step in steps:
        for name, edge in declared_edges(step):
            target = _step_target(edge)
            if target is not None and target not in ids:
                yield _of(step, f"{name} leads to the unknown step {target!r}", f"steps: {listed}")


def _some_step_ends(steps: Steps, _entry: str) -> Iterator[Problem]:
    ends = any(_step_target(e) is None for s in steps for _, e in declared_edges(s))
    if not ends:
        yield Problem("workflow", "never ends", "let at least one outcome lead to None")


def _all_are_reachable(steps: Steps, entry: str) -> Iterator[Problem]:
    # Steps with the same id are reported by another rule; here their targets are joined.
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


StepProblem = tuple[str, str]
"""What is wrong with a step, and what would be right."""


def _is_left(step: StepDef) -> Iterator[StepProblem]:
    if not step.next and step.gate is None:
        yield "leads nowhere", "give it next={Outcome.OK: None} to end there"
    outcomes = ", ".join(f"Outcome.{o.name}" for o in Outcome)
    for key in step.next:
        if not isinstance(key, Outcome):
            yield f"next has the key {key!r}", f"use one of: {outcomes}"


def _verdicts_lead_on(step: StepDef) -> Iterator[StepProblem]:
    if not isinstance(step.handler, HandlerObject) or Outcome.DEFAULT in step.next:
        return
    for outcome in step.handler.outcomes:
        if outcome not in step.next and not (step.gate is not None and outcome is Outcome.OK):
            what = f"can end with Outcome.{outcome.name}, which leads nowhere"
            yield what, f"add Outcome.{outcome.name} to next, with a step or None"


def _titled_is_done(step: StepDef) -> Iterator[StepProblem]:
    # In a run nobody would be given such a step, and it would count as done.
    has_work = step.handler is not None or step.gate is not None
    if step.title and not has_work and not any(str(each).strip() for each in step.actions):
        yield "has a title, but no instructions", "give it actions=[...]"


def _gate_decides(step: StepDef) -> Iterator[StepProblem]:
    if step.gate is None:
        return
    labels = [o.label for o in step.gate.options]
    if not labels:
        yield "gate has no options", "give it at least one GateOption"
    if len(set(labels)) != len(labels):
        yield "gate has two options of one label", "give each its own label"
    if Outcome.OK in step.next:
        what = "has a gate, so next[Outcome.OK] is never taken"
        yield what, "let an option of the gate lead there"


def _step_target(edge: Edge) -> str | None:
    return None if edge.to is None or isinstance(edge.to, End) else edge.to


def _of(step: StepDef, what: str, remedy: str) -> Problem:
    return Problem(f"step {step.id!r}", what, remedy, str(step.id))


# Checks whether handlers can be called as the engine does it: `handler(ctx, name=value, ...)`.


_NOT_BY_POSITION = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)


def _handler_can_be_called(step: StepDef) -> Iterator[StepProblem]:
    handler = step.handler
    if handler is None or isinstance(handler, HandlerObject):
        return
    if not callable(handler):
        what = f"handler is {handler!r:.80}"
        yield what, "a function (ctx) -> (Outcome, dict), a Dispatch, or None"
        return
    try:
        signature = inspect.signature(handler)
    except (TypeError, ValueError):
        yield "handler has no readable signature", "use a Python function"
        return
    parameters = list(signature.parameters.values())
    if not parameters or parameters[0].kind in _NOT_BY_POSITION:
        yield "handler takes no context", "its first parameter must be ctx"
        return
    function = function_of(handler)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        yield "handler yields", "return (Outcome, dict) once, at its end"
    yield from _of_params(handler, parameters[1:])


def _of_params(handler: Any, parameters: Sequence[inspect.Parameter]) -> Iterator[StepProblem]:
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            what = f"parameter {parameter.name!r} cannot be given by name"
            yield what, "put the / right after ctx"
    for param in read_params(handler).values():
        yield from param_problems(param)


def param_problems(param: Param) -> Iterator[StepProblem]:
    """Yields what is wrong with a declared parameter."""
    arg, name = param.arg, f"parameter {param.name!r}"
    if param.unread:
        what = f"{name} has the annotation {param.unread!r}, which cannot be read at run time"
        yield what, "import it outside `if TYPE_CHECKING`, at the top of the module"
    ranged = arg.min is not None or arg.max is not None
    if ranged and param.type not in (int, float, object):
        yield f"{name} has a range", "min and max are for numbers"
    elif arg.min is not None and arg.max is not None and arg.min > arg.max:
        yield f"{name} has min {arg.min} above max {arg.max}", "swap them"
    elif param.default is not EMPTY:
        _, problem = fit(param, param.default)
        if problem:
            yield f"the default of {name}: {problem}", "choose one that fits"


def _params_agree(steps: Steps, _entry: str) -> Iterator[Problem]:
    """Yields parameters that steps declare differently; a run has only one value for each name."""
    first: dict[str, tuple[StepDef, Param]] = {}
    for step in steps:
        for param in read_params(step.handler).values():
            before, known = first.setdefault(param.name, (step, param))
            if _meaning(known) != _meaning(param) or _defaults_differ(known, param):
                what = f"parameter {param.name!r} is declared differently by step {before.id!r}"
                remedy = "declare it alike in both, or give one of them another name"
                yield Problem(f"step {step.id!r}", what, remedy, str(step.id))


def _meaning(param: Param) -> tuple[Any, ...]:
    arg = param.arg
    return (param.type, param.items, arg.min, arg.max, arg.choices)


def _defaults_differ(one: Param, other: Param) -> bool:
    if one.required or other.required:
        return False
    return type(one.default) is not type(other.default) or bool(one.default != other.default)


_GRAPH_RULES: tuple[Callable[[Steps, str], Iterator[Problem]], ...] = (
    _ids_are_unique,
    _entry_exists,
    _targets_exist,
    _some_step_ends,
    _all_are_reachable,
    _params_agree,
)
_STEP_RULES: tuple[Callable[[StepDef], Iterator[StepProblem]], ...] = (
    _is_left,
    _handler_can_be_called,
    _verdicts_lead_on,
    _titled_is_done,
    _gate_decides,
)
