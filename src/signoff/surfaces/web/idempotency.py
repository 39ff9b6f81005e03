"""Remembers which requests were made under which key, so that a repeated one does nothing new.

A client that lost an answer sends its request again with the same `Idempotency-Key`. The key is
recorded together with the name of what the request is about to make, before it is made. So if the
server is killed in between, the repeated request finds the name, and either the thing itself or
nothing.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from signoff.core.errors import OperatorError, UsageError
from signoff.surfaces.web.access import PrivateDatabase

KEEP_SECONDS = 7 * 86400.0

_SCHEMA = """
CREATE TABLE IF NOT EXISTS claims (
    caller  TEXT NOT NULL,
    key     TEXT NOT NULL,
    request TEXT NOT NULL,      -- digest of what was asked
    made    TEXT NOT NULL,      -- the name of what it makes
    at      REAL NOT NULL,
    PRIMARY KEY (caller, key)
) WITHOUT ROWID
"""
_EXPIRE = "DELETE FROM claims WHERE at < ?"
_CLAIM = "INSERT OR IGNORE INTO claims VALUES (?, ?, ?, ?, ?) RETURNING key"
_CLAIMED = "SELECT request, made FROM claims WHERE caller = ? AND key = ?"
_DROP = "DELETE FROM claims WHERE caller = ? AND key = ?"


LOCKS = 64
"""Keys share them: a request must not wait for one with another key, which may start agents."""


class KeyReused(UsageError):  # noqa: N818  # named for what is wrong
    """The idempotency key was used for another request; use a new one."""


class KeyClaim(NamedTuple):
    """What a key stands for."""

    made: str
    """The name of what the first request with this key makes, or has made."""
    repeated: bool


class IdempotencyKeys(PrivateDatabase):
    """The keys that were used in the last days."""

    FILE = "keys.db"

    def __init__(self, path: Path) -> None:
        super().__init__(path, _SCHEMA)
        self._requests = [threading.Lock() for _ in range(LOCKS)]

    @contextmanager
    def request(
        self, caller: str, key: str | None, asked: str, made: str, now: float
    ) -> Iterator[KeyClaim]:
        """Claims a key for as long as its request is answered; the same key again waits that long.

        Otherwise, a second request would not find what the first is about to make. A request that
        is refused gives its key back, so that it can be corrected and sent again.
        """
        if key is None:
            yield KeyClaim(made, repeated=False)
            return
        with self._requests[hash((caller, key)) % LOCKS]:
            claim = self._claim(caller, key, asked, made, now)
            try:
                yield claim
            except OperatorError:
                if not claim.repeated:
                    self.run(_DROP, caller, key)
                raise

    def _claim(self, caller: str, key: str, request: str, made: str, now: float) -> KeyClaim:
        # Raises `KeyReused` if the first request with this key asked for something else.
        digest = hashlib.sha256(request.encode("utf-8", "replace")).hexdigest()
        self.run(_EXPIRE, now - KEEP_SECONDS)
        # Inserted, then read: of two requests with one key, in any process, both see the row of the
        # first.
        new = self.run(_CLAIM, caller, key, digest, made, now)
        ((first, name),) = self.run(_CLAIMED, caller, key)
        if first != digest:
            raise KeyReused
        return KeyClaim(name, repeated=not new)
