"""What messages say about databases: errors of SQLite, the address and the driver of PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from signoff.core.errors import ConfigError, StoreBusy, StoreDamaged, StoreError, WriteFailed
from signoff.runtime.extras import install_command


def driver() -> Any:
    """Returns the psycopg module; raises `ConfigError` if it is not installed."""
    try:
        import psycopg
    except ImportError as error:
        raise ConfigError(
            f"PostgreSQL needs psycopg, which is not installed: {install_command('postgres')}"
        ) from error
    return psycopg


def label_of(url: str) -> str:
    """Returns a description of the database at an address, without its password."""
    parts = _parts(url)
    return f"database {parts.get('dbname', '')} on {parts.get('host') or 'this machine'}"


def user_of(url: str) -> str:
    """Returns the user that an address names; empty if it leaves that to the driver."""
    return str(_parts(url).get("user") or "")


def _parts(url: str) -> dict[str, Any]:
    psycopg = driver()
    try:
        parts: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error as error:
        raise ConfigError(
            "the database's address cannot be read; write postgresql://user@host/name"
        ) from error
    return parts


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Raises errors of SQLite and of the disk in a `with` block as `StoreError`."""
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
    # The extended codes of SQLite add details in the upper bits, and the fix depends on the lower
    # ones alone.
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
