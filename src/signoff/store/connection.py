"""Opens the database file, and turns what SQLite says into what a person can act on."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from signoff.errors import StoreBusy, StoreDamaged, StoreError, WriteFailed
from signoff.store.schema import bring_forward
from signoff.store.wal import LOG_BYTES, lay_out_log

IN_MEMORY = ":memory:"
"""What SQLite calls a database without a file."""

PAGE_BYTES = 8192
"""Journal rows are a few kilobytes; at this size several fit a page and few overflow."""


def connect(path: Path, patience: float) -> sqlite3.Connection:
    """Opens a database, creating or migrating it as needed; `patience` is in seconds."""
    if str(path) == IN_MEMORY:
        return _open(path, patience)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Made by us first, so that nobody else can read it from its first byte on. Only ever when it
    # is new: closing any handle of the file would end all locks this process holds on it, and
    # another process would then take the write-ahead log away from under us.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
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


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turns what SQLite says into what a person can act on."""
    try:
        yield
    except Exception as error:
        told = explained(path, error)
        if told is None:
            raise
        raise told from error


def explained(path: Path, error: BaseException) -> StoreError | None:
    """Returns what went wrong with a file as a person can act on it; None is another's error."""
    match error:
        case sqlite3.DatabaseError():
            return _said_by_sqlite(path, error)
        case UnicodeEncodeError():
            return StoreError(f"a name holds half a character and cannot be stored: {error}")
        case OSError():
            return WriteFailed(f"cannot use {path}: {error.strerror or error}")
    return None


def _said_by_sqlite(path: Path, error: sqlite3.DatabaseError) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(f"{path} is locked by another process; try again")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreDamaged(f"{path} is damaged ({error}); restore a backup, or move it away")
    if code == sqlite3.SQLITE_FULL:
        return WriteFailed(f"the disk is full; free some space, then resume ({path})")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return WriteFailed(f"{path} cannot be written ({error}); check its permissions")
    if code == sqlite3.SQLITE_IOERR:
        return WriteFailed(
            f"the disk failed under {path} ({error}); check that it has room and is sound"
        )
    return StoreError(f"{path}: {error}")
