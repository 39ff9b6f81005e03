"""Tokens that let one particular DELETE through, once, for a short while."""

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
"""Tokens nobody uses are forgotten, the oldest first."""


class MonotonicClock(Protocol):
    """Whatever tells the time."""

    def monotonic(self) -> float:
        """Returns seconds that only ever grow."""


@dataclass(frozen=True)
class DeleteConfirmation:
    """What somebody is about to delete, and the token that allows it."""

    token: str
    table: str
    where: str
    rows: int
    """How many rows the condition holds for now."""

    def __str__(self) -> str:
        """Is the token, so that it can be passed on as it is."""
        return self.token


class Confirmations:
    """Hands out tokens and takes them back; each is good for one delete."""

    def __init__(self, clock: MonotonicClock) -> None:
        self._clock = clock
        self._open: dict[str, tuple[str, float]] = {}

    def issue(self, scope: str, params: Params) -> str:
        """Returns a new token for deleting exactly this."""
        while len(self._open) >= MOST_OPEN:
            del self._open[next(iter(self._open))]
        token = secrets.token_urlsafe(18)
        self._open[token] = (_digest(scope, params), self._clock.monotonic() + VALID_SECONDS)
        return token

    def redeem(self, token: str | None, scope: str, params: Params) -> None:
        """Uses a token up; raises when there is none, or it is for something else, or too old."""
        if not token:
            raise NotAllowed(
                "DELETE needs a token: call get_delete_confirmation(table, where, params), "
                "look at how many rows it names, and pass its token as confirm="
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
                "the token was given for another table or condition; ask for one for this DELETE"
            )


def _digest(scope: str, params: Params) -> str:
    values = sorted(params.items()) if isinstance(params, Mapping) else list(params)
    return hashlib.sha256(f"{scope}\0{values!r}".encode("utf-8", "surrogatepass")).hexdigest()
