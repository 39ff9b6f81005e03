"""A store that lasts as long as its process, for tests and throwaway runs.

It is the SQLite store without a file, so it behaves like the durable store in every way
except durability.
"""

from __future__ import annotations

import weakref
from pathlib import Path

from signoff.runtime.store_port import Store
from signoff.store.connection import IN_MEMORY, Transaction
from signoff.store.sqlite import SqliteStore
from signoff.store.upkeep import back_up


class MemoryStore(SqliteStore):
    """Keeps runs in an in-memory database."""

    def __init__(self) -> None:
        super().__init__(IN_MEMORY)
        weakref.finalize(self, _close, self._read)

    def reopen(self) -> Store:
        """Returns itself: another connection would see a database of its own."""
        return self

    def local_file(self) -> Path | None:
        """Returns None: no other process sees this store."""
        return None

    def backup(self, target: Path) -> int:
        """Copies all runs to a new file; returns how many there are."""
        return back_up(self._read, target)

    def close(self) -> None:
        """Does nothing: the runs remain for as long as the store object exists."""


def _close(connection: Transaction) -> None:
    """Closes a connection that no thread uses at the moment.

    At the end of the program the heartbeat may still read, and a connection that is closed under
    a running query crashes the interpreter.
    """
    with connection as db:
        db.close()
