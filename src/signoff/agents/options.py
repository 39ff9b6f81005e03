"""Validates agent options from the settings file; every error names the option."""

from __future__ import annotations

import math
from collections.abc import Collection

from signoff.errors import ConfigError


def positive_seconds(name: str, value: float) -> float:
    """Returns a time in seconds; raises `ConfigError` unless it is a number above 0."""
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


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
