"""Checks whether handlers can be called as the engine does it: `handler(ctx, name=value, ...)`."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Union, get_args, get_origin

from signoff.core.args import Param, fit, read_params
from signoff.core.code import EMPTY, function_of, resolve
from signoff.core.step import HandlerObject, StepDef
from signoff.errors import Problem

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
