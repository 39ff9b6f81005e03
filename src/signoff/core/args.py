"""Parameters of a workflow: declared on handlers with `Arg`, and checked when a run starts.

A domain (`BoundedInt`, `ChoiceSet`, `Constant`) is the finite set of values that a parameter can
have, so that tests can enumerate them.
"""

from __future__ import annotations

import inspect
import json
import math
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from signoff.core.code import EMPTY, resolve
from signoff.core.errors import Problem

_CATCH_ALL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_GUESSED = (bool, int, float, str, list)
"""Types that an unannotated parameter gets from its default."""
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


@dataclass(frozen=True)
class Arg:
    """What a handler declares about one of its parameters, inside `Annotated[...]`."""

    description: str = ""
    default: Any = EMPTY
    min: int | float | None = None
    max: int | float | None = None
    choices: tuple[str, ...] | None = None
    required: bool = False


@dataclass(frozen=True)
class BoundedInt:
    """The whole numbers from `lo` to `hi`, both included."""

    lo: int
    hi: int

    def __post_init__(self) -> None:
        """Refuses an empty range."""
        if self.lo > self.hi:
            raise ValueError(f"BoundedInt({self.lo}, {self.hi}) is empty: lo must not exceed hi")

    def __iter__(self) -> Iterator[int]:
        """Yields every value, smallest first."""
        return iter(range(self.lo, self.hi + 1))


@dataclass(frozen=True)
class ChoiceSet:
    """A few named values."""

    choices: tuple[Any, ...]

    def __iter__(self) -> Iterator[Any]:
        """Yields the choices in their order."""
        return iter(self.choices)


@dataclass(frozen=True)
class Constant:
    """Exactly one value."""

    value: Any

    def __iter__(self) -> Iterator[Any]:
        """Yields the value."""
        yield self.value


Domain = BoundedInt | ChoiceSet | Constant

UNDECLARED = "to declare it for a handler, list it in the inputs= of the Workflow"
"""What an author does about a parameter that no handler declares or reads as a constant."""


@dataclass(frozen=True)
class Param:
    """One parameter: of a step, read off its handler, or of a workflow, declared as data."""

    name: str
    """As in the handler's signature."""
    type: type
    """What the value is converted to."""
    arg: Arg = Arg()
    """Description, range and choices."""
    default: Any = EMPTY
    """Used when the run is started without it."""
    items: Any = object
    """What the items of a list are converted to."""
    optional: bool = False
    """Whether None is a value of it."""
    unread: str = ""
    """Its annotation, if that cannot be resolved at run time."""
    check: Callable[[Any], str] | None = None
    """Returns what is wrong with a converted value when a run starts, such as that a file is
    missing; empty if nothing. It is not part of a workflow's digest."""

    @property
    def required(self) -> bool:
        """Whether a run cannot start without it."""
        return self.default is EMPTY

    def domain(self) -> Domain | None:
        """Returns the finite set of values it can take, or None when it is open."""
        if self.arg.choices is not None:
            return ChoiceSet(self.arg.choices)
        if self.type is bool:
            return ChoiceSet((False, True))
        if self.type is int and self.arg.min is not None and self.arg.max is not None:
            return BoundedInt(math.ceil(self.arg.min), math.floor(self.arg.max))
        return None


def read_params(handler: Any) -> dict[str, Param]:
    """Returns the parameters a handler takes besides its context.

    What a partial has filled in is no parameter any more. A handler without a readable
    signature has none; validation reports it.
    """
    try:
        parameters = list(inspect.signature(handler).parameters.values())
    except (TypeError, ValueError):
        return {}
    filled = handler.keywords if isinstance(handler, partial) else {}
    return {
        parameter.name: _param(handler, parameter)
        for parameter in parameters[1:]
        if parameter.kind not in _CATCH_ALL and parameter.name not in filled
    }


def bind(
    declared: Mapping[str, Param],
    inputs: Mapping[str, Any],
    others: Collection[str] | None = (),
    later: Collection[str] = (),
    remedy: str = "",
) -> tuple[dict[str, Any], list[Problem]]:
    """Converts and checks the parameters of a run; returns the values and every problem.

    `others` are names whose values are passed unchecked; None accepts any name. Those of `later`
    may be missing although they are required. `remedy` is what else an unknown name may need.
    """
    known = [*declared, *sorted(others or ())]
    unknown = [name for name in inputs if others is not None and name not in known]
    valid = f"valid: {', '.join(known)}" if known else "it takes none"
    valid = "; ".join(filter(None, [valid, remedy]))
    problems = [Problem(f"parameter {name!r}", "is unknown", valid) for name in unknown]
    values = {n: v for n, v in inputs.items() if n not in declared and n not in unknown}
    for name, param in declared.items():
        if name not in inputs:
            if param.required:
                problems += [missing(name, _hint(param))] if name not in later else []
            else:
                values[name] = param.default
                problems += _check(param, param.default)
            continue
        value, problem = fit(param, inputs[name])
        if problem:
            problems.append(Problem(f"parameter {name!r}", problem, _hint(param)))
        else:
            problems += _check(param, value)
        values[name] = value
    return values, problems


def _check(param: Param, value: Any) -> list[Problem]:
    what = param.check(value) if param.check is not None and value is not None else ""
    return [Problem(f"parameter {param.name!r}", what, _hint(param))] if what else []


def missing(name: str, hint: str = "") -> Problem:
    """Returns the problem with a parameter that a run needs and did not get."""
    return Problem(f"parameter {name!r}", "is missing", hint or _as_input(name))


def fit(param: Param, value: Any) -> tuple[Any, str]:
    """Returns a value converted to the parameter's type, and what is wrong with it, if anything."""
    if value is None and (param.optional or param.default is None or param.type is object):
        return None, ""
    try:
        value = _convert(param.type, param.items, value)
        return value, _out_of_range(param.arg, value)
    except (TypeError, ValueError, LookupError, OverflowError):
        return value, f"{value!r:.80} is not {_article(param.type)}"


def _param(handler: Callable[..., Any], parameter: inspect.Parameter) -> Param:
    # An annotation that cannot be resolved is no error here: the definition reports it together
    # with all other problems.
    annotation, unread = resolve(handler, parameter.annotation)
    hint, arg, optional = _stripped(annotation)
    default = parameter.default if parameter.default is not EMPTY else arg.default
    if arg.required:
        default = EMPTY
    # `times=3` without an annotation means a number; any other default says nothing about a type.
    if hint is EMPTY:
        hint = type(default) if type(default) in _GUESSED else object
    if get_origin(hint) is Literal:
        choices = get_args(hint)
        arg = arg if arg.choices is not None else replace(arg, choices=choices)
        hint = type(choices[0])
    kind = get_origin(hint) or hint
    inner = get_args(hint)[:1] if kind in (list, tuple) else ()
    items = _class(inner[0]) if inner else object
    return Param(parameter.name, _class(kind), arg, default, items, optional, unread)


def _class(hint: Any) -> type:
    return hint if isinstance(hint, type) and hint is not Any else object


def _stripped(hint: Any) -> tuple[Any, Arg, bool]:
    """Removes `Annotated` and `| None` from a hint; a union of several types becomes `object`."""
    arg, optional = Arg(), False
    while True:
        if get_origin(hint) is Annotated:
            hint, *extras = get_args(hint)
            arg = next((e for e in extras if isinstance(e, Arg)), arg)
        elif get_origin(hint) in (Union, types.UnionType):
            others = [a for a in get_args(hint) if a is not types.NoneType]
            optional = optional or len(others) < len(get_args(hint))
            hint = others[0] if len(others) == 1 else object
        else:
            return hint, arg, optional


def _out_of_range(arg: Arg, value: Any) -> str:
    if arg.choices is not None and value not in arg.choices:
        return f"{value!r:.80} is not one of the choices"
    if arg.min is not None and value < arg.min:
        return f"{value!r:.80} is below {arg.min}"
    if arg.max is not None and value > arg.max:
        return f"{value!r:.80} is above {arg.max}"
    return ""


def _convert(kind: type, items: type, value: Any) -> Any:
    if kind in (list, tuple):
        return [_convert(items, object, item) for item in _to_list(value)]
    if kind is bool:
        return _BOOLEANS[str(value).strip().lower()]
    if kind in (int, float):
        return _to_number(kind, value)
    if isinstance(value, kind):
        return value
    if kind is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise ValueError(value)


def _to_list(value: Any) -> Sequence[Any]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return value
    raise ValueError(value)


def _to_number(kind: type, value: Any) -> int | float:
    # `True` is an `int` for Python, but `-i times=true` is surely a mistake.
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(value)
    # Rounding would silently run something else than what was asked for.
    if kind is int and isinstance(value, float) and not value.is_integer():
        raise ValueError(value)
    number: int | float = kind(value)
    if isinstance(number, float) and not math.isfinite(number):
        raise ValueError(value)
    return number


def _article(kind: type) -> str:
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    return names.get(kind, f"a {kind.__name__}")


def describe_param(param: Param) -> str:
    """Returns a parameter's type, whether it is required, and its description, on one line."""
    kind = "list" if param.type in (list, tuple) else _article(param.type).removeprefix("a ")
    facts = [f"one of {', '.join(map(str, param.arg.choices))}" if param.arg.choices else kind]
    default = "optional" if param.default is None else f"default {param.default!r}"
    facts.append("required" if param.required else default)
    return f"{', '.join(facts)}{f': {param.arg.description}' if param.arg.description else ''}"


def param_to_json(param: Param) -> dict[str, Any]:
    """Returns what a parameter accepts, as plain values; a workflow's digest covers all of it."""
    choices = param.arg.choices
    return {
        "name": param.name,
        "type": param.type.__name__,
        "items": param.items.__name__,
        "choices": list(choices) if choices is not None else None,
        "range": [param.arg.min, param.arg.max],
        "required": param.required,
        "default": None if param.required else param.default,
    }


def _hint(param: Param) -> str:
    arg = param.arg
    if arg.choices is not None:
        return f"choose one of: {', '.join(map(str, arg.choices))}"
    if arg.min is not None or arg.max is not None:
        low = "any" if arg.min is None else arg.min
        high = "any" if arg.max is None else arg.max
        return f"from {low} to {high}"
    return arg.description or _as_input(param.name)


def _as_input(name: str) -> str:
    return f"give it as {name}=VALUE"


# What stands for a value that is still to be filled in, and how values are written as text.


_LISTED = 10
"""A placeholder lists that many numbers of a range; of a longer range, the first and the last."""


def placeholder(param: Param) -> str:
    """Returns what stands for a value to fill in: its choices, or the parameter's name."""
    domain = param.domain()
    if isinstance(domain, BoundedInt) and domain.hi - domain.lo >= _LISTED:
        return f"<{domain.lo}|...|{domain.hi}>"
    choices = "|".join(map(value_text, domain)) if domain is not None else param.name
    return f"<{choices}>"


def value_text(value: Any) -> str:
    """Returns a parameter's value as it is typed, and read again by the next command."""
    match value:
        case bool():
            return str(value).lower()
        case list() | tuple() if _is_plain(value):
            return ",".join(value)
        case list() | tuple() | dict():
            return json.dumps(value, ensure_ascii=False)
    return str(value)


def _is_plain(items: Sequence[Any]) -> bool:
    """Tells whether the items of a list can be told apart when commas join them."""
    plain = all(isinstance(each, str) and each.strip() == each and each for each in items)
    return bool(items) and plain and not any("," in each for each in items) and items[0][0] != "["
