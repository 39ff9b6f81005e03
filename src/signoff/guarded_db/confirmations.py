"""Tokens that allow one particular change, once, for a short time, of the rows that were seen."""

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
class SeenRows:
    """The rows that a statement changed when its confirmation was requested."""

    rows: int
    others: int
    """Rows of other tables that change with them."""
    digest: str = ""
    """Identifies the rows; empty if the database cannot return them."""


@dataclass(frozen=True)
class ChangeConfirmation:
    """The rows that will change, and the token that allows it."""

    token: str
    table: str
    rows: int
    """The number of rows that match now."""
    others: int
    """Rows of other tables that change with them, by foreign keys and triggers."""

    def __str__(self) -> str:
        """Returns the token, so that this object can be passed as `confirm=`."""
        return self.token


class Confirmations:
    """Issues tokens and redeems them, each for one change."""

    def __init__(self, clock: MonotonicClock) -> None:
        self._clock = clock
        self._open: dict[str, tuple[str, float, SeenRows]] = {}

    def issue(self, scope: str, params: Params, seen: SeenRows) -> str:
        """Returns a new token for one change of these rows."""
        while len(self._open) >= MOST_OPEN:
            del self._open[next(iter(self._open))]
        token = secrets.token_urlsafe(18)
        until = self._clock.monotonic() + VALID_SECONDS
        self._open[token] = (_digest(scope, params), until, seen)
        return token

    def redeem(self, token: str, scope: str, params: Params) -> SeenRows:
        """Uses a token up; raises `NotAllowed` if it is wrong or too old."""
        digest, until, seen = self._open.pop(token, ("", 0.0, None))
        if seen is None:
            raise NotAllowed("the token is unknown or was used before; ask for a new one")
        if self._clock.monotonic() > until:
            raise NotAllowed(
                f"the token is older than {VALID_SECONDS:g} seconds; ask for a new one"
            )
        if digest != _digest(scope, params):
            raise NotAllowed(
                "the token is for another table or condition; ask for one for this statement"
            )
        return seen


def check_same_rows(now: SeenRows, confirmed: SeenRows) -> None:
    """Raises `NotAllowed` if a change would be made to other rows than were confirmed."""
    if now != confirmed:
        raise NotAllowed(
            f"the rows have changed since they were confirmed ({confirmed.rows} then, "
            f"{now.rows} now, and {confirmed.others} and {now.others} of other tables); ask for a "
            "new token"
        )


def confirmation_missing(what: str) -> NotAllowed:
    """Returns the error for a change without a token."""
    return NotAllowed(
        f"{what} needs a token: call get_confirmation(statement, params), check how many rows it "
        "would change, and pass the token as confirm="
    )


def _digest(scope: str, params: Params) -> str:
    values = sorted(params.items()) if isinstance(params, Mapping) else list(params)
    return hashlib.sha256(f"{scope}\0{values!r}".encode("utf-8", "surrogatepass")).hexdigest()
