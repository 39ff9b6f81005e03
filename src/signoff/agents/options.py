"""Validates agent options from the settings file; every error names the option."""

from __future__ import annotations

import inspect
import math
from collections.abc import Collection
from dataclasses import fields, is_dataclass
from typing import Any

from signoff.errors import ConfigError


def positive_seconds(name: str, value: float) -> float:
    """Returns a time in seconds; raises `ConfigError` unless it is a number above 0."""
    # Not `value <= 0`: a comparison with NaN is always false, and NaN must be refused.
    if not _is_number(value) or not value > 0:
        raise ConfigError(f"{name} must be a number of seconds above 0, not {value!r}")
    return float(value)


def non_negative(name: str, value: float) -> float:
    """Returns a number of at least 0; raises `ConfigError` otherwise."""
    if not _is_number(value) or not 0 <= value < math.inf:
        raise ConfigError(f"{name} must be a number of at least 0, not {value!r}")
    return float(value)


def whole_number(name: str, value: int, *, minimum: int = 1) -> int:
    """Returns a whole number of at least `minimum`; raises `ConfigError` otherwise."""
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise ConfigError(f"{name} must be a whole number of at least {minimum}, not {value!r}")
    return value


def one_of(name: str, value: str, choices: Collection[str]) -> str:
    """Returns one of the choices; raises `ConfigError` that lists them otherwise."""
    if value not in choices:
        raise ConfigError(f"{name} must be one of: {', '.join(choices)}, not {value!r}")
    return value


def option_names(kind: Any) -> list[str] | None:
    """Returns the options that a kind of agent takes; None if that cannot be told.

    A class that takes `**options` passes them on to the next class it is made of, or to the
    dataclass it names as `OPTIONS`.
    """
    if not isinstance(kind, type):
        names, passes_on = _keywords(kind)
        return None if passes_on else names
    names, classes = [], kind.__mro__[:-1]
    for each in classes:
        if "__init__" not in vars(each):
            continue
        own, passes_on = _keywords(vars(each)["__init__"])
        names += own[1:]
        if not passes_on:
            return names
        if is_dataclass(options := vars(each).get("OPTIONS")):
            return [*names, *(field.name for field in fields(options))]
    # What the last class passes on is unknown. One without any constructor takes no options.
    made_plainly = not any({"__init__", "__new__"} & vars(each).keys() for each in classes)
    return [] if made_plainly else None


def _keywords(function: Any) -> tuple[list[str], bool]:
    """Returns the parameters that can be passed by name, and whether it takes any others."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [], True
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return named, any(p.kind is p.VAR_KEYWORD for p in parameters)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
