"""Settings of a single origin, before those of higher precedence override them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Value(NamedTuple):
    """One setting and its origin."""

    value: Any
    origin: str
    path: tuple[str, ...] = ()
    """The keys that lead to it in a file; empty where the dots of its key tell them apart."""


Layer = Mapping[str, Value]
"""Settings of one origin, by dotted key."""


class Rate(NamedTuple):
    """A number of calls in a number of seconds."""

    calls: int
    seconds: float
