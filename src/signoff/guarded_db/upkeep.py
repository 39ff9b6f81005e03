"""Maintains the user's SQLite file: status, migrations, backups, restore.

Servers have better tools of their own for this, and their owners use them already.

Each backup is a file with a record next to it. The record has the id of the database and the
digest of the file; a file without a record, or that does not match its record, is not restored.
A path does not identify a database: restoring a backup of another one that once had the same path
would destroy this one. So the database has an id of its own, in a table that backups contain.

SQLite's own backup copies a database while other processes use it.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote

from signoff.databases import translate_errors
from signoff.documents.regular_files import (
    create_private,
    make_private_folders,
    translate_write_errors,
)
from signoff.errors import StoreBusy, StoreDamaged, StoreError, UnknownName, UsageError
from signoff.guarded_db import migrations as migrating
from signoff.guarded_db.migrations import AppliedMigration, MigrationFile, read_migrations
from signoff.guarded_db.ports import transaction
from signoff.guarded_db.sources import read_address
from signoff.guarded_db.sqlite import SqliteConnection
from signoff.guarded_db.staging import runs_since
from signoff.remedies import ListBackups, PassOption

KEEP = 10
"""How many backups of each origin are kept by default; the oldest are removed first."""

_RECORD = ".json"
_READ_ID = "SELECT id FROM signoff_database"
_RETRY_SECONDS = 0.05


class Origin(StrEnum):
    """Who took a backup. Those of one origin never push out those of another."""

    HAND = "hand"
    """Taken by a human; never removed."""
    RUN = "run"
    MIGRATION = "migration"
    RESTORE = "restore"


@dataclass(frozen=True)
class Backup:
    """One backup, as its record describes it."""

    id: str
    created_at: str
    """The time in UTC, as ISO 8601."""
    path: str
    size_bytes: int
    sha256: str
    database: str
    """The id of its database; see `identity`."""
    place: str
    """The path of that database, as shown to users; a key of stored records."""
    reason: str
    """Why it was taken: by hand, or before a run, a migration or a restore."""
    origin: str


@dataclass(frozen=True)
class Restored:
    """What a restore did."""

    backup: Backup
    saved: Backup | None
    """A backup of the previous content; None if there was nothing readable."""
    runs: tuple[str, ...] = ()
    """The runs whose work was undone."""


@dataclass(frozen=True)
class DatabaseStatus:
    """The state of the database."""

    label: str
    """Its path, as shown to users."""
    exists: bool
    applied: tuple[AppliedMigration, ...]
    pending: tuple[MigrationFile, ...]
    newest_backup: Backup | None


@dataclass(frozen=True)
class Migrated:
    """What `migrate` did, or with `dry_run` would do."""

    applied: tuple[MigrationFile, ...]
    backup: Backup | None
    """Taken before anything was changed; None if nothing was, or the database is new."""
    dry_run: bool = False


class Upkeep:
    """Maintains one database."""

    def __init__(
        self,
        address: str | Path,
        *,
        migrations: Path | None = None,
        backups: Path | None = None,
        now: Callable[[], float] = time.time,
        keep: int = KEEP,
        patience: float = 5.0,
    ) -> None:
        """By default, the backups are in the folder `backups` next to the file."""
        path = read_address(address).path
        if path is None:
            raise UsageError(
                "signoff does not migrate or back up a PostgreSQL database; use your own tool for "
                "migrations, and pg_dump for backups"
            )
        self._path = path
        self._place = str(path.absolute())
        self._migrations = migrations
        self._folder = backups or path.parent / "backups"
        self._now = now
        self._keep = keep
        self._patience = patience

    def status(self) -> DatabaseStatus:
        """Returns the applied and the pending migrations, and the newest backup."""
        files = self._files()
        newest = next(iter(self.backups()), None)
        if not self._exists():
            return DatabaseStatus(str(self._path), False, (), files, newest)
        with self._connect() as db:
            state = migrating.state(db, None if self._migrations is None else files)
            return DatabaseStatus(db.label, True, state.applied, state.pending, newest)

    def migrate(self, *, dry_run: bool = False) -> Migrated:
        """Applies the migrations that are pending, after a backup.

        A dry run applies them too, and rolls them back: what would fail, fails.
        """
        if self._migrations is None:
            raise UsageError(
                "no folder of migrations is set; pass one, or set data.migrations",
                remedy=PassOption("migrations", "DIR"),
            )
        files = self._files()
        fresh = not self._exists()
        if fresh and dry_run:
            return Migrated(files, None, dry_run=True)
        if fresh:
            self._create()
        with self._connect() as db:
            pending = migrating.state(db, files).pending
            if dry_run:
                migrating.rehearse(db, pending)
                return Migrated(pending, None, dry_run=True)
            backup = None
            if pending and not fresh:
                backup = self.backup("before a migration", origin=Origin.MIGRATION)
            return Migrated(migrating.migrate(db, pending), backup)

    def backup(
        self, reason: str = "by hand", *, origin: Origin = Origin.HAND, spare: str = ""
    ) -> Backup:
        """Takes a backup and removes the oldest of its origin, but never the one called `spare`."""
        if not self._exists():
            raise UsageError(f"there is no database at {self._path} to back up")
        with translate_write_errors(self._folder):
            backup = self._take(reason, origin)
            if origin is not Origin.HAND:
                self._remove_oldest(origin, spare)
        return backup

    def backups(self) -> tuple[Backup, ...]:
        """Returns all backups, newest first."""
        newest_first = sorted(self._records(), key=lambda b: (b.created_at, b.id), reverse=True)
        return tuple(newest_first)

    def restore(self, id_: str) -> Restored:
        """Restores a backup, after checking it and backing up the current database.

        A backup that is damaged, was changed, or belongs to another database is refused, and the
        database stays as it is.
        """
        backup = self._find(id_)
        self._verify(backup)
        saved: Backup | None = None
        runs: tuple[str, ...] = ()
        if self._database_id() is not None:
            runs = self._runs_since(backup.created_at)
            saved = self.backup(f"before restoring {id_}", origin=Origin.RESTORE, spare=id_)
        self._copy_in(Path(backup.path))
        return Restored(backup, saved, runs)

    def affected_runs(self, id_: str) -> tuple[str, ...]:
        """Returns the runs whose work a restore would undo."""
        backup = self._find(id_)
        if self._database_id() is None:
            return ()
        return self._runs_since(backup.created_at)

    def _files(self) -> tuple[MigrationFile, ...]:
        return () if self._migrations is None else read_migrations(self._migrations)

    def _exists(self) -> bool:
        return self._path.is_file()

    def _create(self) -> None:
        with translate_write_errors(self._path):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Another process may be creating it right now, which is fine.
            with suppress(FileExistsError):
                os.close(create_private(self._path))

    def _connect(self) -> closing[SqliteConnection]:
        return closing(SqliteConnection(self._path, patience=self._patience))

    def _take(self, reason: str, origin: Origin) -> Backup:
        make_private_folders(self._folder)
        now = datetime.fromtimestamp(self._now(), UTC)
        id_ = f"{now:%Y%m%d-%H%M%S-%f}-{secrets.token_hex(2)}"
        target = self._folder / f"{id_}.db"
        with _new_file(target) as unfinished:
            database = self._copy_out(unfinished)
        backup = Backup(
            id=id_,
            created_at=now.isoformat(timespec="microseconds"),
            path=str(target),
            size_bytes=target.stat().st_size,
            sha256=_digest(target),
            database=database,
            place=self._place,
            reason=reason,
            origin=origin.value,
        )
        with _new_file(self._folder / f"{id_}{_RECORD}") as unfinished:
            unfinished.write_text(json.dumps(asdict(backup), indent=1) + "\n", "utf-8")
        return backup

    def _remove_oldest(self, origin: Origin, spare: str) -> None:
        # Several databases may share a folder, and each keeps its own number of backups.
        # Backups of a database that is gone are kept: they may be all that is left of it.
        database = self._database_id()
        ours = [
            backup
            for backup in self.backups()
            if backup.database == database and backup.origin == origin
        ]
        for backup in ours[self._keep :]:
            if backup.id != spare:
                Path(backup.path).unlink(missing_ok=True)
                (self._folder / f"{backup.id}{_RECORD}").unlink(missing_ok=True)

    def _records(self) -> Iterator[Backup]:
        for record in self._folder.glob(f"[!.]*{_RECORD}"):
            # Another process may be removing backups; an unreadable record is no backup.
            with suppress(OSError, ValueError, TypeError):
                yield _read_record(record)

    def _find(self, id_: str) -> Backup:
        known = {backup.id: backup for backup in self.backups()}
        if id_ not in known:
            raise UnknownName("backup", id_, known)
        return known[id_]

    def _verify(self, backup: Backup) -> None:
        path = Path(backup.path)
        current = self._database_id()
        if current is not None and backup.database != current:
            raise StoreError(
                f"backup {backup.id} belongs to another database ({backup.place}) than the one "
                "that is there now; to restore it, move the current one away first"
            )
        if current is None and backup.place != self._place:
            raise StoreError(
                f"backup {backup.id} belongs to {backup.place}; it is not restored to "
                f"{self._place}, which has no content to compare it with"
            )
        if not path.is_file() or _digest(path) != backup.sha256:
            raise StoreDamaged(
                f"backup {backup.id} is damaged or was changed; choose another one",
                remedy=ListBackups(),
            )
        self._check_copy(path, backup.database)

    def _database_id(self) -> str | None:
        """Returns the id of the database; None if there is nothing to read."""
        try:
            with self._connect() as db:
                return _read_id(db)
        except StoreBusy:
            raise
        except (StoreError, UsageError):
            return None

    def _runs_since(self, moment: str) -> tuple[str, ...]:
        """Returns the runs that have changed the database since a time."""
        with self._connect() as db:
            return runs_since(db, moment)

    def _copy_out(self, target: Path) -> str:
        """Writes a consistent copy into a new file; returns the id of the database."""
        with self._connect() as db:
            database = _ensure_id(db)
        with (
            translate_errors(self._path),
            self._open(self._path) as source,
            self._open(target) as copy,
        ):
            source.backup(copy, progress=self._patience_limit(), sleep=_RETRY_SECONDS)
            # Without a write-ahead log the copy is one file, not three.
            copy.execute("PRAGMA journal_mode = DELETE")
        return database

    def _check_copy(self, source: Path, database: str) -> None:
        """Raises if a file is not an intact copy of the database with that id."""
        try:
            with self._open_immutable(source) as copy:
                integrity = copy.execute("PRAGMA integrity_check(1)").fetchone()[0]
                ids = copy.execute(_READ_ID).fetchall()
        except sqlite3.DatabaseError as error:
            raise StoreDamaged(f"{source} is not a usable backup: {error}") from error
        if integrity != "ok":
            raise StoreDamaged(f"{source} is damaged: {integrity}")
        if ids != [(database,)]:
            raise StoreError(f"{source} is a backup of another database; it is not restored")

    def _copy_in(self, source: Path) -> None:
        """Replaces the content of the database with that of the file, in one transaction."""
        self._move_damaged_file()
        with (
            translate_errors(self._path),
            self._open_immutable(source) as backup,
            self._open(self._path) as target,
        ):
            backup.backup(target, progress=self._patience_limit(), sleep=_RETRY_SECONDS)

    def _move_damaged_file(self) -> None:
        """Renames a file that is too damaged to be written to, so that nothing is lost."""
        if not self._path.is_file():
            return
        try:
            with self._open(self._path) as db:
                db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in (
                sqlite3.SQLITE_NOTADB,
                sqlite3.SQLITE_CORRUPT,
            ):
                self._path.replace(self._path.with_name(f"{self._path.name}.damaged"))
                for tail in ("-wal", "-shm"):
                    self._path.with_name(self._path.name + tail).unlink(missing_ok=True)

    def _open(self, path: Path) -> closing[sqlite3.Connection]:
        return closing(sqlite3.connect(path, isolation_level=None, timeout=self._patience))

    def _open_immutable(self, path: Path) -> closing[sqlite3.Connection]:
        """Opens a file that no process writes to, without creating files next to it."""
        address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
        return closing(sqlite3.connect(address, uri=True, isolation_level=None))

    def _patience_limit(self) -> Callable[[int, int, int], None]:
        """Returns a callback that ends a copy that waits too long for a lock."""
        deadline = time.monotonic() + self._patience

        def check(status: int, _remaining: int, _total: int) -> None:
            if (
                status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                and time.monotonic() > deadline
            ):
                raise StoreBusy(f"{self._path} is locked by another process; try again")

        return check


def _read_id(db: SqliteConnection) -> str | None:
    """Returns the database's id, empty if it has none yet, and None if it has no tables."""
    if not db.own("SELECT 1 FROM sqlite_master LIMIT 1"):
        return None
    rows = db.own(_READ_ID) if db.own_table("signoff_database") else []
    return str(rows[0][0]) if len(rows) == 1 else ""


def _ensure_id(db: SqliteConnection) -> str:
    """Returns the database's id, and gives it one if it has none."""
    if existing := _read_id(db):
        return existing
    with transaction(db, write=True):
        if existing := _read_id(db):
            # Another process has given it an id a moment ago.
            return existing
        new = secrets.token_hex(16)
        db.own("CREATE TABLE IF NOT EXISTS signoff_database (id TEXT NOT NULL PRIMARY KEY)")
        db.own("INSERT INTO signoff_database (id) VALUES (?)", [new])
        db.commit()
    return new


def _read_record(record: Path) -> Backup:
    data = json.loads(record.read_text(encoding="utf-8"))
    known = {field.name for field in fields(Backup)}
    backup = Backup(**{key: value for key, value in data.items() if key in known})
    # The folder may have been moved, and a path in a record must not lead anywhere else.
    path = record.with_name(Path(backup.path).name)
    if backup.id != record.name.removesuffix(_RECORD) or not path.is_file():
        raise ValueError(record.name)
    return replace(backup, path=str(path))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _new_file(path: Path) -> Iterator[Path]:
    """Yields a private file to write to; it gets its name when it is complete and on disk."""
    unfinished = path.with_name(f".{path.name}.part")
    try:
        os.close(create_private(unfinished))
        yield unfinished
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
