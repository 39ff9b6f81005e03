"""Opens the database file and runs transactions on it.

A new write-ahead log starts with its full length of zeros, which SQLite reads as an
empty log, and is brought back to its start when it is full. A commit that makes the log
file longer has to make the file's new size durable too, which on most file systems
costs as much again as the commit; a log of full length is only written over.
"""

from __future__ import annotations

import errno
import os
import secrets
import sqlite3
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from signoff.documents.regular_files import create_private, make_private_folders
from signoff.sqlite_errors import explained
from signoff.store.schema import bring_forward

IN_MEMORY = ":memory:"
"""What SQLite calls a database without a file."""

PAGE_BYTES = 8192
"""Journal rows are a few kilobytes; at this size several fit a page and few overflow."""

LOG_BYTES = 1 << 20
"""Long enough to group many commits per checkpoint, short enough to write in a millisecond."""


def connect(path: Path, patience: float) -> sqlite3.Connection:
    """Opens a database, creating or migrating it as needed; `patience` is in seconds."""
    if str(path) == IN_MEMORY:
        return _open(path, patience)
    make_private_folders(path.parent)
    # Made by us first, so that nobody else can read it from its first byte on. Only ever when it
    # is new: closing any handle of the file would end all locks this process holds on it, and
    # another process would then take the write-ahead log away from under us.
    with suppress(FileExistsError):
        os.close(create_private(path))
    if path.stat().st_size == 0:
        _open(path, patience).close()
    lay_out_log(path)
    return _open(path, patience)


def _open(path: Path, patience: float) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=patience)
    try:
        db.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute(f"PRAGMA wal_autocheckpoint = {LOG_BYTES // PAGE_BYTES}")
        bring_forward(db, path)
    except BaseException:
        db.close()
        raise
    return db


def lay_out_log(database: Path) -> None:
    """Makes the log of a database nobody has open full length; anything else is left alone."""
    log = database.with_name(f"{database.name}-wal")
    if log.exists():
        return
    draft = database.with_name(f"{database.name}-wal.{secrets.token_hex(4)}")
    # Only speed is at stake: no room, no hard links or a rival are no reason to fail.
    with suppress(OSError):
        try:
            _write_zeros(draft)
            # Appears at once and whole, or not at all when somebody else was first.
            os.link(draft, log)
        finally:
            draft.unlink(missing_ok=True)


def _write_zeros(path: Path) -> None:
    handle = create_private(path)
    try:
        if os.write(handle, bytes(LOG_BYTES)) < LOG_BYTES:
            # On a disk that is nearly full, what is left belongs to the runs.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(handle)
    finally:
        os.close(handle)


class Transaction:
    """The use of a connection by one thread; `begin` opens a transaction, where it is one.

    Every commit goes through here, so it is a plain class: a generator under
    `@contextmanager` costs several times as much.
    """

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
