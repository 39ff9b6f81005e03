"""A turn on the connection: nobody else's thread meanwhile, and a write is all or nothing.

Every commit goes through here, so it is a plain class: a generator under `@contextmanager`
costs several times as much.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from signoff.store.connection import explained


class Transaction:
    """The use of a connection by one thread; `begin` opens a transaction, where it is one."""

    __slots__ = ("_begin", "_db", "_lock", "_path")

    def __init__(
        self,
        db: sqlite3.Connection,
        lock: threading.RLock,
        path: Path,
        begin: Callable[[], object] | None = None,
    ) -> None:
        self._db = db
        self._lock = lock
        self._path = path
        self._begin = begin

    def __enter__(self) -> sqlite3.Connection:
        """Gives the connection, once it is free."""
        self._lock.acquire()
        if self._begin is None:
            return self._db
        try:
            # A Ctrl-C can strike anywhere and leave a turn without its end; another heals it.
            self._take_back()
            self._begin()
        except BaseException as refused:
            with suppress(sqlite3.Error):
                self._take_back()
            self._lock.release()
            told = explained(self._path, refused)
            if told is None:
                raise
            raise told from refused
        return self._db

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Commits, or takes everything back when something went wrong."""
        refused = error
        try:
            if self._begin is not None:
                refused = error or self._refused_to_commit()
                if refused is not None:
                    with suppress(sqlite3.Error):
                        self._take_back()
        finally:
            self._lock.release()
        if refused is None:
            return
        told = explained(self._path, refused)
        if told is not None:
            raise told from refused
        if refused is not error:
            raise refused

    def _take_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")

    def _refused_to_commit(self) -> BaseException | None:
        try:
            self._db.execute("COMMIT")
        except BaseException as error:  # noqa: BLE001  # raised once all is taken back
            return error
        return None
