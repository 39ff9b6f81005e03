"""Settings as they are read from one origin, before stronger origins replace them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Value(NamedTuple):
    """One setting and its origin."""

    value: Any
    origin: str


Layer = Mapping[str, Value]
"""Settings of one origin, by dotted key."""


class Rate(NamedTuple):
    """A number of calls in a number of seconds."""

    calls: int
    seconds: float
