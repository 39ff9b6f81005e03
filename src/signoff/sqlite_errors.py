"""Turns errors of SQLite into errors of signoff that name the file and the fix."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from signoff.errors import StoreBusy, StoreDamaged, StoreError, WriteFailed


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raises errors of SQLite and of the disk as `StoreError`."""
    try:
        yield
    except Exception as error:
        translation = store_error(path, error)
        if translation is None:
            raise
        raise translation from error


def store_error(path: Path, error: BaseException) -> StoreError | None:
    """Returns the `StoreError` for an error about a file; None if it is about something else."""
    match error:
        case sqlite3.DatabaseError():
            return _sqlite_error(path, error)
        case UnicodeEncodeError():
            return StoreError(f"a name contains half a character and cannot be stored: {error}")
        case OSError():
            return WriteFailed(f"cannot use {path}: {error.strerror or error}")
    return None


def _sqlite_error(path: Path, error: sqlite3.DatabaseError) -> StoreError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(f"{path} is locked by another process; try again")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return StoreDamaged(f"{path} is damaged ({error}); restore a backup, or move the file away")
    if code == sqlite3.SQLITE_FULL:
        return WriteFailed(f"the disk is full; free some space, then resume ({path})")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return WriteFailed(f"{path} cannot be written ({error}); check its permissions")
    if code == sqlite3.SQLITE_IOERR:
        return WriteFailed(f"{path} cannot be read or written ({error}); check the disk")
    return StoreError(f"{path}: {error}")
