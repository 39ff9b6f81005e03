"""Settings of a single origin, before those of higher precedence override them."""

from __future__ import annotations

import re
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


UNITS = {"s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "hour": 3600.0, "day": 86400.0}
_RATE = re.compile(r"\s*(\d+)\s*/\s*([a-z]+)\s*")


def parse_rate(text: str) -> Rate:
    """Parses a rate such as `10/min`; raises ValueError if it is not one."""
    match = _RATE.fullmatch(text.lower())
    if match is None or match[2] not in UNITS or int(match[1]) < 1:
        raise ValueError(text)
    return Rate(int(match[1]), UNITS[match[2]])
