"""Copies a SQLite database with SQLite's own backup, while other processes use it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from time import monotonic
from urllib.parse import quote

from signoff.errors import StoreBusy, StoreDamaged, StoreError, UsageError
from signoff.guarded_db.identity import READ_ID, ensure_id, read_id
from signoff.guarded_db.sqlite import PATIENCE_SECONDS, SqliteConnection
from signoff.guarded_db.staging import runs_since
from signoff.sqlite_errors import translate_errors

_RETRY_SECONDS = 0.05


class SqliteCopies:
    """Copies of one database file."""

    suffix = ".db"
    tables: Sequence[str] = ()

    def __init__(self, path: Path, *, patience: float = PATIENCE_SECONDS) -> None:
        self.path = path
        self.label = str(path.absolute())
        self._patience = patience

    def database_id(self) -> str | None:
        """Returns the id of the database; None if there is nothing to read."""
        try:
            with closing(SqliteConnection(self.path, patience=self._patience)) as db:
                return read_id(db)
        except StoreBusy:
            raise
        except (StoreError, UsageError):
            return None

    def copy_out(self, target: Path) -> str:
        """Writes a consistent copy into a new file; returns the id of the database."""
        with closing(SqliteConnection(self.path, patience=self._patience)) as db:
            database = ensure_id(db)
        with (
            translate_errors(self.path),
            self._open(self.path) as source,
            self._open(target) as copy,
        ):
            source.backup(copy, progress=self._patience_limit(), sleep=_RETRY_SECONDS)
            # Without a write-ahead log the copy is one file, not three.
            copy.execute("PRAGMA journal_mode = DELETE")
        return database

    def runs_since(self, moment: str) -> tuple[str, ...]:
        """Returns the runs that have changed the database since a time."""
        with closing(SqliteConnection(self.path, patience=self._patience)) as db:
            return runs_since(db, moment)

    def verify(self, source: Path, database: str, _tables: Sequence[str] = ()) -> None:
        """Raises if a file is not an intact copy of the database with that id."""
        try:
            with self._open_immutable(source) as copy:
                integrity = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
                ids = copy.execute(READ_ID).fetchall()
        except sqlite3.DatabaseError as error:
            raise StoreDamaged(f"{source} is not a usable backup: {error}") from error
        if integrity != "ok":
            raise StoreDamaged(f"{source} is damaged: {integrity}")
        if ids != [(database,)]:
            raise StoreError(f"{source} is a backup of another database; it is not restored")

    def copy_in(self, source: Path, _tables: Sequence[str] = (), _since: str = "") -> None:
        """Replaces the content of the database with that of the file, in one transaction."""
        self._move_damaged_file()
        with (
            translate_errors(self.path),
            self._open_immutable(source) as backup,
            self._open(self.path) as target,
        ):
            backup.backup(target, progress=self._patience_limit(), sleep=_RETRY_SECONDS)

    def _move_damaged_file(self) -> None:
        """Renames a file that is too damaged to be written to, so that nothing is lost."""
        if not self.path.is_file():
            return
        try:
            with self._open(self.path) as db:
                db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (
                sqlite3.SQLITE_NOTADB,
                sqlite3.SQLITE_CORRUPT,
            ):
                self.path.replace(self.path.with_name(f"{self.path.name}.damaged"))
                for tail in ("-wal", "-shm"):
                    self.path.with_name(self.path.name + tail).unlink(missing_ok=True)

    def _open(self, path: Path) -> closing[sqlite3.Connection]:
        return closing(sqlite3.connect(path, isolation_level=None, timeout=self._patience))

    def _open_immutable(self, path: Path) -> closing[sqlite3.Connection]:
        """Opens a file that no process writes to, without creating files next to it."""
        address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
        return closing(sqlite3.connect(address, uri=True, isolation_level=None))

    def _patience_limit(self) -> Callable[[int, int, int], None]:
        """Returns a callback that ends a copy that waits too long for a lock."""
        deadline = monotonic() + self._patience

        def check(status: int, _remaining: int, _total: int) -> None:
            if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and monotonic() > deadline:
                raise StoreBusy(f"{self.path} is locked by another process; try again")

        return check
