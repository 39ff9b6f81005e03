"""What messages say about databases: errors of SQLite, the address and the driver of PostgreSQL."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

from signoff._extras import install_command
from signoff.errors import ConfigError, StoreBusy, StoreDamaged, StoreError, WriteFailed


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


class translate_errors:  # noqa: N801  # used as a function, and in half the time of a generator
    """Raises errors of SQLite and of the disk in a `with` block as `StoreError`."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Begins the block."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Raises the translation of an error, if it has one."""
        translation = store_error(self._path, error) if isinstance(error, Exception) else None
        if translation is not None:
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
