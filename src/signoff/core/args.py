"""Parameters of a workflow: declared on handlers with `Arg`, checked once at the start.

A domain (`BoundedInt`, `ChoiceSet`, `Constant`) is the finite set of values a
parameter can take; tests enumerate it.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from signoff.errors import Problem

EMPTY: Any = inspect.Parameter.empty
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


@dataclass(frozen=True)
class Arg:
    """What a handler says about one of its parameters, inside `Annotated[...]`."""

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
        """Yields the choices in the order they were given."""
        return iter(self.choices)


@dataclass(frozen=True)
class Constant:
    """Exactly one value."""

    value: Any

    def __iter__(self) -> Iterator[Any]:
        """Yields the value."""
        yield self.value


Domain = BoundedInt | ChoiceSet | Constant


@dataclass(frozen=True)
class Param:
    """One parameter of a step, read off its handler."""

    name: str
    """As the handler spells it."""
    type: type
    """What the value is converted to."""
    arg: Arg
    """Description, range and choices."""
    default: Any = EMPTY
    """Used when the run is started without it."""

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
            return BoundedInt(int(self.arg.min), int(self.arg.max))
        return None


def read_params(handler: Callable[..., Any]) -> dict[str, Param]:
    """Returns the parameters a handler takes besides its context."""
    signature = inspect.signature(handler)
    hints = _hints(handler)
    found = {}
    for index, (name, parameter) in enumerate(signature.parameters.items()):
        if index == 0 or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        kind, arg = _annotation(hints.get(name, str))
        default = parameter.default if parameter.default is not EMPTY else arg.default
        if arg.required:
            default = EMPTY
        found[name] = Param(name, kind, arg, default)
    return found


def bind(declared: Mapping[str, Param], given: Mapping[str, Any]) -> tuple[
    dict[str, Any], list[Problem]
]:
    """Converts and checks what a run is started with; returns values and every problem."""
    values: dict[str, Any] = {}
    problems = []
    unknown = [name for name in given if name not in declared] if declared else []
    for name in unknown:
        problems.append(
            Problem(f"parameter {name!r}", "is not declared by any step", _known(declared))
        )
    for name, param in declared.items():
        if name not in given:
            if param.required:
                problems.append(Problem(f"parameter {name!r}", "is missing", _hint(param)))
            else:
                values[name] = param.default
            continue
        value, problem = _fit(param, given[name])
        if problem:
            problems.append(Problem(f"parameter {name!r}", problem, _hint(param)))
        values[name] = value
    if not declared:
        values.update(given)
    return values, problems


def _hints(handler: Callable[..., Any]) -> dict[str, Any]:
    target = handler if inspect.isroutine(handler) else type(handler).__call__
    try:
        return get_type_hints(target, include_extras=True)
    except (NameError, TypeError):
        # A forward reference that only a type checker can resolve: fall back to plain text.
        return {}


def _annotation(hint: Any) -> tuple[type, Arg]:
    arg = Arg()
    if get_origin(hint) is Annotated:
        hint, *extras = get_args(hint)
        arg = next((e for e in extras if isinstance(e, Arg)), arg)
    if get_origin(hint) in (Union, types.UnionType):
        hint = next((a for a in get_args(hint) if a is not type(None)), str)
    hint = get_origin(hint) or hint
    if hint is typing.Any or not isinstance(hint, type):
        hint = object
    return hint, arg


def _fit(param: Param, value: Any) -> tuple[Any, str]:
    try:
        value = _convert(param.type, value)
    except (TypeError, ValueError):
        return value, f"{value!r} is not {_article(param.type)}"
    arg = param.arg
    if arg.choices is not None and value not in arg.choices:
        return value, f"{value!r} is not one of the choices"
    if arg.min is not None and value < arg.min:
        return value, f"{value!r} is below {arg.min}"
    if arg.max is not None and value > arg.max:
        return value, f"{value!r} is above {arg.max}"
    return value, ""


def _convert(kind: type, value: Any) -> Any:
    if value is None or kind is object or (isinstance(value, kind) and type(value) is not bool):
        return value
    if kind is bool:
        return _to_bool(value)
    if kind in (int, float):
        if isinstance(value, bool):
            raise ValueError(value)
        return kind(value)
    if kind in (list, tuple) and isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if kind in (list, tuple) and isinstance(value, Sequence):
        return list(value)
    if kind is str and isinstance(value, int | float):
        return str(value)
    raise ValueError(value)


def _to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(value)


def _article(kind: type) -> str:
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    return names.get(kind, f"a {kind.__name__}")


def _known(declared: Mapping[str, Param]) -> str:
    return f"declared: {', '.join(declared)}"


def _hint(param: Param) -> str:
    arg = param.arg
    if arg.choices is not None:
        return f"choose one of: {', '.join(map(str, arg.choices))}"
    if arg.min is not None or arg.max is not None:
        low = "any" if arg.min is None else arg.min
        high = "any" if arg.max is None else arg.max
        return f"from {low} to {high}"
    return arg.description or f"give it as -i {param.name}=VALUE"
