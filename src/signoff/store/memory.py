"""A store that lives and dies with its process, for tests and throw-away runs.

It is the SQLite store without a file, so it keeps every promise the durable one keeps
except the one its name denies.
"""

from __future__ import annotations

import weakref

from signoff.runtime.store_port import Store
from signoff.store.connection import IN_MEMORY
from signoff.store.sqlite import SqliteStore


class MemoryStore(SqliteStore):
    """Runs in a database without a file."""

    def __init__(self) -> None:
        super().__init__(IN_MEMORY)
        weakref.finalize(self, self._db.close)

    def reopen(self) -> Store:
        """Returns itself: another connection would see a database of its own."""
        return self

    def close(self) -> None:
        """Does nothing: the runs stay for as long as the program holds the store."""
