"""Tokens that allow one particular DELETE, once, for a short time."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from signoff.errors import NotAllowed
from signoff.guarded_db.verdict import Params

VALID_SECONDS = 30.0
MOST_OPEN = 1_000
"""Unused tokens that are stored; the oldest are dropped first."""


class MonotonicClock(Protocol):
    """A source of time, such as the module `time`."""

    def monotonic(self) -> float:
        """Returns seconds that never decrease."""


@dataclass(frozen=True)
class DeleteConfirmation:
    """The rows that will be deleted, and the token that allows it."""

    token: str
    table: str
    where: str
    rows: int
    """The number of rows that match now."""

    def __str__(self) -> str:
        """Returns the token, so that this object can be passed as `confirm=`."""
        return self.token


class Confirmations:
    """Issues tokens and redeems them, each for one DELETE."""

    def __init__(self, clock: MonotonicClock) -> None:
        self._clock = clock
        self._open: dict[str, tuple[str, float]] = {}

    def issue(self, scope: str, params: Params) -> str:
        """Returns a new token for one deletion."""
        while len(self._open) >= MOST_OPEN:
            del self._open[next(iter(self._open))]
        token = secrets.token_urlsafe(18)
        self._open[token] = (_digest(scope, params), self._clock.monotonic() + VALID_SECONDS)
        return token

    def redeem(self, token: str | None, scope: str, params: Params) -> None:
        """Uses a token up; raises `NotAllowed` if it is missing, wrong or too old."""
        if not token:
            raise NotAllowed(
                "DELETE needs a token: call get_delete_confirmation(table, where, params), "
                "check how many rows match, and pass the token as confirm="
            )
        digest, until = self._open.pop(token, ("", 0.0))
        if not digest:
            raise NotAllowed("the token is unknown or was used before; ask for a new one")
        if self._clock.monotonic() > until:
            raise NotAllowed(
                f"the token is older than {VALID_SECONDS:g} seconds; ask for a new one"
            )
        if digest != _digest(scope, params):
            raise NotAllowed(
                "the token is for another table or condition; ask for one for this DELETE"
            )


def _digest(scope: str, params: Params) -> str:
    values = sorted(params.items()) if isinstance(params, Mapping) else list(params)
    return hashlib.sha256(f"{scope}\0{values!r}".encode("utf-8", "surrogatepass")).hexdigest()
