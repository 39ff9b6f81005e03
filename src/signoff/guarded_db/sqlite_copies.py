"""Copies a SQLite database out and in by SQLite's own backup, while others go on using it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from time import monotonic
from urllib.parse import quote

from signoff.errors import StoreBusy, StoreDamaged, StoreError, UsageError
from signoff.guarded_db.identity import READ, identify, identity
from signoff.guarded_db.sqlite import PATIENCE_SECONDS, SqliteConnection
from signoff.sqlite_errors import translate_errors

_RETRY_SECONDS = 0.05


class SqliteCopies:
    """Copies of one database file."""

    suffix = ".db"

    def __init__(self, path: Path, *, patience: float = PATIENCE_SECONDS) -> None:
        self.path = path
        self.place = str(path.absolute())
        self._patience = patience

    def name(self) -> str | None:
        """Returns the database's own name; None when there is nothing to read."""
        try:
            with closing(SqliteConnection(self.path, patience=self._patience)) as db:
                return identity(db)
        except StoreBusy:
            raise
        except (StoreError, UsageError):
            return None

    def copy_out(self, target: Path) -> str:
        """Writes a consistent copy into a file; readers and, with a log, writers go on."""
        with closing(SqliteConnection(self.path, patience=self._patience)) as db:
            name = identify(db)
        with (
            translate_errors(self.path),
            self._open(self.path) as source,
            self._open(target) as copy,
        ):
            source.backup(copy, progress=self._giving_up(), sleep=_RETRY_SECONDS)
            # One file, not three: the copy has no write-ahead log of its own.
            copy.execute("PRAGMA journal_mode = DELETE")
        return name

    def verify(self, source: Path, database: str) -> None:
        """Raises when a file is not a sound copy of the database of that name."""
        try:
            with self._open_fixed(source) as copy:
                found = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
                names = copy.execute(READ).fetchall()
        except sqlite3.DatabaseError as error:
            raise StoreDamaged(f"{source} is no sound backup: {error}") from error
        if found != "ok":
            raise StoreDamaged(f"{source} is damaged: {found}")
        if names != [(database,)]:
            raise StoreError(f"{source} is a backup of another database; it is not restored")

    def copy_in(self, source: Path) -> None:
        """Makes the database what the file says, in one transaction."""
        self._move_wreck_aside()
        with (
            translate_errors(self.path),
            self._open_fixed(source) as backup,
            self._open(self.path) as target,
        ):
            backup.backup(target, progress=self._giving_up(), sleep=_RETRY_SECONDS)

    def _move_wreck_aside(self) -> None:
        """Keeps a file that is no database any more under another name; it cannot be written."""
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

    @contextmanager
    def _open(self, path: Path) -> Iterator[sqlite3.Connection]:
        db = sqlite3.connect(path, isolation_level=None, timeout=self._patience)
        with closing(db):
            yield db

    @contextmanager
    def _open_fixed(self, path: Path) -> Iterator[sqlite3.Connection]:
        """Opens a file that nobody writes, without making files beside it."""
        address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as db:
            yield db

    def _giving_up(self) -> Callable[[int, int, int], None]:
        """Returns what ends a copy that waits for a lock; by itself it would wait for ever."""
        until = monotonic() + self._patience

        def look(status: int, _remaining: int, _total: int) -> None:
            if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and monotonic() > until:
                raise StoreBusy(f"{self.path} is locked by another process; try again")

        return look
