"""What a run may cost and what it has cost.

Unknown is not zero: a call that did not report its price or its tokens makes that total
unknown, and surfaces show it as unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on what a run or a visit of a step may use; None means no limit."""

    usd: float | None = None
    tokens: int | None = None
    calls: int | None = None
    seconds: float | None = None

    def invalid(self) -> dict[str, Any]:
        """Returns the limits that are not valid amounts.

        Nothing is raised here, because a definition reports all its problems together.
        """
        return {name: value for name, value in self.to_json().items() if not _is_amount(value)}

    def __bool__(self) -> bool:
        """Tells whether any limit is set."""
        return (self.usd, self.tokens, self.calls, self.seconds) != (None, None, None, None)

    def over(self, weaker: Limits) -> Limits:
        """Returns these limits, with those of `weaker` where none is set."""
        return Limits.from_json({**weaker.to_json(), **self.to_json()})

    def at_most(self, highest: Limits) -> Limits:
        """Returns these limits, each lowered to that of `highest` if it has one."""
        most = highest.to_json()
        return Limits.from_json(
            {name: min(value, most.get(name, value)) for name, value in self.to_json().items()}
        )

    def to_json(self) -> dict[str, float]:
        """Returns only the limits that are set."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Limits:
        """Reads what `to_json` wrote, or a `limits:` section; raises `ValueError`."""
        names = [f.name for f in fields(cls)]
        if unknown := sorted(set(data or ()).difference(names)):
            raise ValueError(f"unknown limit {unknown[0]!r}; the limits are: {', '.join(names)}")
        limits = cls(**(data or {}))
        for name, value in limits.invalid().items():
            raise ValueError(f"limit {name} must be {AMOUNT}, not {value!r}")
        return limits


AMOUNT = "a number of at least 0"

_ABSURD = 1e12
"""No single call can use as many tokens or dollars."""


def amount_of(value: object) -> int | float | None:
    """Returns a reported amount; None if no call can have it: negative, not finite, no number."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return value if 0 <= value < _ABSURD else None


@dataclass(frozen=True, slots=True)
class Usage:
    """What one call reported; None where it reported nothing."""

    tokens_in: int | None = None
    tokens_out: int | None = None
    usd: float | None = None
    model: str | None = None
    tokens_cached: int | None = None
    """The part of `tokens_in` that was read from the provider's prompt cache."""
    tokens_cache_write: int | None = None
    """The part of `tokens_in` that was written to the cache, if that has a price of its own."""
    tokens_reasoning: int | None = None
    """The part of `tokens_out` that the model used to think."""
    model_calls: int | None = None
    """How often an agent program called a model."""

    def impossible(self) -> dict[str, Any]:
        """Returns the amounts that no call can have: negative, not finite, or not numbers."""
        # NaN compares as neither smaller nor larger than any limit, so a single one would switch
        # all limits off. A negative amount would pay for later calls.
        return {
            name: value
            for name in USAGE_AMOUNTS
            for value in [getattr(self, name)]
            if value is not None and amount_of(value) is None
        }

    def cleaned(self) -> Usage:
        """Returns it with impossible amounts as unknown, so that they cannot spoil any total."""
        model = self.model if self.model is None else str(self.model)
        return replace(self, model=model, **dict.fromkeys(self.impossible()))

    @property
    def tokens(self) -> int | None:
        """Tokens in and out together, unknown when either is."""
        if self.tokens_in is None or self.tokens_out is None:
            return None
        return self.tokens_in + self.tokens_out

    def to_json(self) -> dict[str, Any]:
        """Returns only what was reported."""
        values = {name: getattr(self, name) for name in _USAGE_FIELDS}
        return {name: value for name, value in values.items() if value is not None}


_USAGE_FIELDS = tuple(f.name for f in fields(Usage))

USAGE_AMOUNTS = tuple(name for name in _USAGE_FIELDS if name != "model")
"""The fields of `Usage` that are numbers."""


class LedgerEntry(NamedTuple):
    """What one agent cost one step of one run."""

    step: str
    agent: str
    model: str
    calls: int = 0
    """Ended ones; a total counts them as they start."""
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    unknown_tokens: int = 0
    unknown_usd: int = 0
    tokens_cached: int = 0
    """The part of `tokens_in` that was read from a prompt cache."""
    unknown_cached: int = 0
    """How many calls did not report that part."""

    def plus(self, usage: Usage | None) -> LedgerEntry:
        """Returns it with one more call."""
        reported = usage or _NO_REPORT
        return LedgerEntry(
            self.step,
            self.agent,
            self.model,
            self.calls + 1,
            self.tokens_in + (reported.tokens_in or 0),
            self.tokens_out + (reported.tokens_out or 0),
            self.usd + (reported.usd or 0.0),
            self.unknown_tokens + (reported.tokens is None),
            self.unknown_usd + (reported.usd is None),
            self.tokens_cached + (reported.tokens_cached or 0),
            # Without input there is nothing to cache.
            self.unknown_cached + (reported.tokens_cached is None and reported.tokens_in != 0),
        )


_NO_REPORT = Usage()


@dataclass(slots=True)
class Spend:
    """Running totals of a run or a step; grows only through the fold."""

    calls: int = 0
    known_tokens: int = 0
    known_usd: float = 0.0
    unknown_tokens: int = 0
    """How many calls did not report their tokens."""
    unknown_usd: int = 0
    """How many calls did not report their cost."""
    seconds: float = 0.0
    """Time the run was at work, without waits for humans."""
    known_cached: int = 0
    """Tokens that are known to have been read from a prompt cache; `known_tokens` has them too."""

    @property
    def tokens(self) -> int | None:
        """All tokens, or None if some call did not report them."""
        return None if self.unknown_tokens else self.known_tokens

    @property
    def usd(self) -> float | None:
        """All money, or None if some call did not report it."""
        return None if self.unknown_usd else self.known_usd

    def add(self, usage: Usage | None) -> None:
        """Counts one finished call."""
        # One call without a report makes a total unknown, but what others reported still counts
        # toward the limits.
        reported = usage or _NO_REPORT
        tokens = reported.tokens
        self.known_tokens += tokens or 0
        self.unknown_tokens += tokens is None
        self.known_usd += reported.usd or 0.0
        self.unknown_usd += reported.usd is None
        self.known_cached += reported.tokens_cached or 0

    def to_json(self) -> dict[str, float]:
        """Returns the totals that are not zero."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if value}


def _is_amount(value: Any) -> bool:
    # `True` is a number for Python, and `limit: yes` in YAML would mean one dollar.
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and 0 <= value < math.inf


def reached(limits: Limits, spend: Spend) -> str | None:
    """Names the first limit that leaves no room for another call, or None."""
    # Limits are compared with the known amounts: an unknown cost must not stop a run by itself.
    if limits.calls is not None and spend.calls >= limits.calls:
        return "calls"
    totals = {"tokens": spend.known_tokens, "usd": spend.known_usd, "seconds": spend.seconds}
    for name, total in totals.items():
        limit = getattr(limits, name)
        if limit is not None and total >= limit:
            return name
    return None
