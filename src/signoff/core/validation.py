"""Checks a whole definition, one small function per rule; all problems are reported.

First the fields of each step are checked, because authors may not use a type checker. A field
with a wrong value gets a harmless one in its place, so that the rules about the graph can still
be checked and their problems appear in the same report. The rules about handlers are in
`callables`.

An end such as `End.REJECTED` is a string too, so rules about step ids always look at
`_step_target` and never at the raw edge.
"""

from __future__ import annotations

import inspect
import types
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Union, get_args, get_origin

from signoff.core.args import Param, fit, read_params
from signoff.core.code import EMPTY, function_of, resolve
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
    """Returns every problem of a definition; empty means it can run."""
    workflow = _Fields("workflow")
    workflow.check("name", name, _is_name(name), "a short name")
    workflow.check("max_iterations", max_iterations, _is_bound(max_iterations), _BOUND)
    workflow.limits(limits if limits is not None else Limits())
    # Rules about the graph run on steps whose fields are sound, so each mistake is reported once
    # and not again as an odd consequence of itself.
    found = workflow.problems
    if not steps:
        found.append(Problem("workflow", "has no steps", "give it at least one StepDef"))
    sound_steps = []
    for position, step in enumerate(steps, 1):
        if not isinstance(step, StepDef):
            found.append(Problem(f"step {position}", f"is {step!r:.80}", "a StepDef(...)"))
            continue
        where = f"step {step.id!r}" if _is_name(step.id) else f"step {position}"
        fields = _Fields(where, str(step.id))
        sound = fields.sound_step(step, f"step {position}")
        sound_steps.append(sound)
        found += fields.problems
        # `is`, because an id of the wrong type may not even be comparable.
        if entry is step.id:
            entry = sound.id
    return found + [problem for rule in _RULES for problem in rule(sound_steps, entry)]


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


class _Fields:
    """Checks the fields of a step or of the workflow itself, and collects their problems."""

    def __init__(self, where: str, step: str = "") -> None:
        self.problems: list[Problem] = []
        self._where, self._step = where, step

    def check(self, name: str, value: Any, fits: bool, remedy: str) -> bool:
        """Adds a problem with a value that does not fit, and returns whether it fits."""
        if not fits:
            what = f"{name} is {value!r:.80}"
            self.problems.append(Problem(self._where, what, remedy, self._step))
        return fits

    def limits(self, limits: Any) -> Limits:
        if not self.check("limits", limits, isinstance(limits, Limits), "Limits(...)"):
            return Limits()
        for name, value in limits.invalid().items():
            self.check(f"limits.{name}", value, False, AMOUNT)
        return limits  # type: ignore[no-any-return]  # checked above

    def sound_step(self, step: StepDef, name: str) -> StepDef:
        """Returns the step with the right types in every field; `name` is for one without an id."""
        wrong = [
            field
            for field, (fits, remedy) in _FIELDS.items()
            if not self.check(field, getattr(step, field), fits(getattr(step, field)), remedy)
        ]
        if wrong:
            stand_in = StepDef(name, next={Outcome.OK: None})
            step = replace(step, **{field: getattr(stand_in, field) for field in wrong})
        sound: dict[str, Any] = {
            "actions": self._listed("actions", step.actions, object, "a list of instructions"),
            "limits": self.limits(step.limits),
            "preconditions": self._conditions("preconditions", step.preconditions),
            "postconditions": self._conditions("postconditions", step.postconditions),
            "next": {
                key: self._target(f"next[{getattr(key, 'value', key)!r}]", target)
                for key, target in step.next.items()
            },
            "gate": self._gate(step.gate) if step.gate is not None else None,
        }
        # A copy takes as long as all checks, and nearly every step is sound.
        return replace(step, **sound) if self.problems else step

    def _conditions(self, name: str, value: Any) -> list[Condition]:
        listed = self._listed(name, value, Condition, "a list of Condition(name, check, error)")
        for each in listed:
            name = f"the check of {each.name!r}"
            self.check(name, each.check, callable(each.check), "a function")
        return [each for each in listed if callable(each.check)]

    def _gate(self, gate: Gate) -> Gate:
        has_prompt = isinstance(gate.prompt, str) and bool(gate.prompt.strip())
        self.check("the gate's prompt", gate.prompt, has_prompt, "what the human is asked")
        options = self._listed("the gate's options", gate.options, GateOption, "a list of options")
        # If all options are wrong, the gate must not also be reported as one without options.
        if not options and gate.options:
            options = [GateOption("stand-in", None)]
        context = self._listed("the gate's context", gate.context, str, "a list of names")
        return Gate(str(gate.prompt), [self._option(o) for o in options], context)

    def _option(self, option: GateOption) -> GateOption:
        named = _is_name(option.label)
        self.check("the label of a gate's option", option.label, named, "a short name")
        target = self._target(f"option {option.label!r}", option.next)
        return GateOption(str(option.label), target, bool(option.requires_input))

    def _target(self, name: str, target: Any) -> Edge:
        edge = as_edge(target)
        leads = edge.to is None or isinstance(edge.to, str)
        if not self.check(name, edge.to, leads, "a step's id, an End, an Edge, or None"):
            edge = replace(edge, to=None)
        if not self.check(f"the bound of {name}", edge.bound, _is_bound(edge.bound), _BOUND):
            edge = replace(edge, bound=None)
        valid = edge.on_limit in ("end", "ask")
        self.check(f"on_limit of {name}", edge.on_limit, valid, "'end' or 'ask'")
        return edge

    def _listed(self, name: str, value: Any, kind: type, remedy: str) -> list[Any]:
        is_list = isinstance(value, Sequence) and not isinstance(value, str)
        entries = value if self.check(name, value, is_list, remedy) else []
        for each in entries:
            self.check(f"an entry of {name}", each, isinstance(each, kind), remedy)
        return [each for each in entries if isinstance(each, kind)]


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
    # Sorted as texts: an id of a wrong type has been reported already, and must not raise here.
    ids = {s.id for s in steps}
    listed = ", ".join(sorted(map(str, ids)))
    for step in steps:
        for name, edge in declared_edges(step):
            target = _step_target(edge)
            if target is not None and target not in ids:
                yield _of(step, f"{name} leads to the unknown step {target!r}", f"steps: {listed}")


def _some_step_ends(steps: Steps, _entry: str) -> Iterator[Problem]:
    ends = any(_step_target(e) is None for s in steps for _, e in declared_edges(s))
    if steps and not ends:
        yield Problem("workflow", "never ends", "let at least one outcome lead to None")


def _every_step_leads_on(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step in steps:
        if not step.next and step.gate is None:
            yield _of(step, "leads nowhere", "give it next={Outcome.OK: None} to end there")


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


def _handlers_can_be_called(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step in steps:
        yield from (_of(step, what, remedy) for what, remedy in handler_problems(step.handler))


def _verdicts_lead_on(steps: Steps, _entry: str) -> Iterator[Problem]:
    for step in steps:
        if not isinstance(step.handler, HandlerObject) or Outcome.DEFAULT in step.next:
            continue
        for outcome in step.handler.outcomes:
            if outcome not in step.next and not (step.gate is not None and outcome is Outcome.OK):
                what = f"can end with Outcome.{outcome.name}, which leads nowhere"
                yield _of(step, what, f"add Outcome.{outcome.name} to next, with a step or None")


def _titled_steps_are_done(steps: Steps, _entry: str) -> Iterator[Problem]:
    # In a run nobody would be given such a step, and it would count as done.
    for step in steps:
        has_work = step.handler is not None or step.gate is not None
        if step.title and not has_work and not any(str(each).strip() for each in step.actions):
            yield _of(step, "has a title, but no instructions", "give it actions=[...]")


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
    _verdicts_lead_on,
    _titled_steps_are_done,
    lambda steps, _entry: agreement_problems(steps),
    _gates_decide,
)


def _step_target(edge: Edge) -> str | None:
    return None if edge.to is None or isinstance(edge.to, End) else edge.to


def _of(step: StepDef, what: str, remedy: str) -> Problem:
    return Problem(f"step {step.id!r}", what, remedy, str(step.id))


# Checks whether handlers can be called as the engine does it: `handler(ctx, name=value, ...)`.


_NOT_BY_POSITION = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)


HandlerProblem = tuple[str, str]
"""What is wrong, and what would be right."""


def handler_problems(handler: Any) -> Iterator[HandlerProblem]:
    """Yields what is wrong with a step's handler."""
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
    for parameter in parameters[1:]:
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            what = f"parameter {parameter.name!r} cannot be given by name"
            yield what, "put the / right after ctx"
    yield from _result_problems(handler, signature.return_annotation)
    for param in read_params(handler).values():
        yield from param_problems(param)


def _result_problems(handler: Callable[..., Any], annotation: Any) -> Iterator[HandlerProblem]:
    function = function_of(handler)
    hint, _ = resolve(handler, annotation)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        yield "handler yields", "return (Outcome, dict) once, at its end"
    elif not _may_be_result(hint):
        name = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
        what = f"handler is annotated to return {name}"
        yield what, "a handler returns tuple[Outcome, dict[str, Any]]"


def param_problems(param: Param) -> Iterator[HandlerProblem]:
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


def agreement_problems(steps: Sequence[StepDef]) -> Iterator[Problem]:
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


def _may_be_result(hint: Any) -> bool:
    """Tells whether a return annotation leaves room for a tuple, now or once awaited."""
    if get_origin(hint) in (Union, types.UnionType):
        return any(_may_be_result(each) for each in get_args(hint))
    kind = get_origin(hint) or hint
    if kind is EMPTY or kind is Any or not isinstance(kind, type) or hasattr(kind, "__await__"):
        return True
    try:
        return issubclass(kind, tuple) or issubclass(tuple, kind)
    except TypeError:
        return True  # a protocol that `issubclass` does not support
