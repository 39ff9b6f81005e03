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
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote

from signoff.contracts.guarded_db.guard import lex
from signoff.contracts.guarded_db.ports import Connection, read_address, transaction
from signoff.contracts.guarded_db.sqlite import SqliteConnection
from signoff.contracts.guarded_db.staging import runs_since
from signoff.contracts.guarded_db.verdict import OWN_TABLES
from signoff.core.errors import (
    ConfigError,
    NotAllowed,
    StoreBusy,
    StoreDamaged,
    StoreError,
    UnknownName,
    UsageError,
)
from signoff.core.remedies import ListBackups, PassOption
from signoff.documents.regular_files import (
    create_private,
    make_private_folders,
    translate_write_errors,
)
from signoff.store.databases import translate_errors

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
class RestoreReport:
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
class MigrationReport:
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
            state = migration_state(db, None if self._migrations is None else files)
            return DatabaseStatus(db.label, True, state.applied, state.pending, newest)

    def migrate(self, *, dry_run: bool = False) -> MigrationReport:
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
            return MigrationReport(files, None, dry_run=True)
        if fresh:
            self._create()
        with self._connect() as db:
            pending = migration_state(db, files).pending
            if dry_run:
                rehearse(db, pending)
                return MigrationReport(pending, None, dry_run=True)
            backup = None
            if pending and not fresh:
                backup = self.backup("before a migration", origin=Origin.MIGRATION)
            return MigrationReport(migrate(db, pending), backup)

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

    def restore(self, id_: str) -> RestoreReport:
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
        return RestoreReport(backup, saved, runs)

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


# Applies numbered migrations to the user's SQLite file, each once.
#
# They are files `001_name.sql`, `002_name.sql`, numbered without gaps. The table
# `signoff_migrations` lists the applied ones, with digests of the files. Each file is one
# transaction; the first that fails is rolled back, and those before it stay applied.


_TABLE = """
CREATE TABLE IF NOT EXISTS signoff_migrations (
    version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL,
    applied_at TEXT NOT NULL
)
"""
_APPLIED = "SELECT version, name, checksum, applied_at FROM signoff_migrations ORDER BY version"
_IS_APPLIED = "SELECT 1 FROM signoff_migrations WHERE version = ?"
_TRACK = "INSERT INTO signoff_migrations (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)"
_FILE = re.compile(r"(\d{3,})_([A-Za-z0-9][\w-]*)\.sql")
_OWN = re.compile(rf"\b{OWN_TABLES}(steps|migrations|database)\b", re.IGNORECASE)

_FIRST_WORD = re.compile(r"[\s;]*(\w+)")

_NOT_INSIDE = frozenset(
    "begin start commit end rollback abort savepoint release attach detach vacuum pragma".split()
)
"""Statements that would end the migration's transaction, or cannot be part of one."""


@dataclass(frozen=True)
class MigrationFile:
    """One migration."""

    version: int
    name: str
    path: Path
    sql: str

    @property
    def checksum(self) -> str:
        """The digest of its text; line endings do not matter."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


@dataclass(frozen=True)
class AppliedMigration:
    """A migration as the database recorded it."""

    version: int
    name: str
    checksum: str
    applied_at: str


@dataclass(frozen=True)
class MigrationState:
    """The applied and the pending migrations of a database."""

    applied: tuple[AppliedMigration, ...]
    pending: tuple[MigrationFile, ...]


def migration_state(db: Connection, migrations: Sequence[MigrationFile] | None) -> MigrationState:
    """Compares the files with what was applied; raises `ConfigError` if an applied one changed.

    `migrations` is None if the files are unknown; then nothing is compared.
    """
    rows = db.own(_APPLIED) if db.has_table("signoff_migrations") else []
    applied = tuple(AppliedMigration(*row) for row in rows)
    if migrations is None:
        return MigrationState(applied, ())
    files = {migration.version: migration for migration in migrations}
    problems = [problem for done in applied for problem in _changed(done, files)]
    if problems:
        raise ConfigError("; ".join(problems))
    versions = {done.version for done in applied}
    latest = max(versions, default=0)
    pending = tuple(m for m in migrations if m.version not in versions)
    late = [m.path.name for m in pending if m.version < latest]
    if late:
        raise ConfigError(f"{', '.join(late)}: number {latest} was applied before it; renumber it")
    return MigrationState(applied, pending)


def rehearse(db: Connection, pending: Sequence[MigrationFile]) -> None:
    """Applies everything that is pending and rolls it back; raises what a real run would."""
    with _schema_transaction(db):
        for migration in pending:
            _run(db, migration)
        if pending:
            _check_foreign_keys(db, pending[-1])


def migrate(db: Connection, pending: Sequence[MigrationFile]) -> tuple[MigrationFile, ...]:
    """Applies what is pending, each file in a transaction; returns what was applied here."""
    return tuple(migration for migration in pending if _apply(db, migration))


def _apply(db: Connection, migration: MigrationFile) -> bool:
    """Applies a migration; returns False if another process has applied it in the meantime."""
    with _schema_transaction(db):
        db.own(_TABLE)
        if db.own(_IS_APPLIED, [migration.version]):
            return False
        _run(db, migration)
        _check_foreign_keys(db, migration)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        db.own(_TRACK, [migration.version, migration.name, migration.checksum, now])
        db.commit()
    return True


@contextmanager
def _schema_transaction(db: Connection) -> Iterator[None]:
    """Opens a transaction in which SQLite does not check foreign keys.

    SQLite cannot alter most of a table: a migration creates it again and drops the old one,
    which foreign keys would forbid. `_check_foreign_keys` checks all of them at the end.
    """
    # This setting cannot be changed inside a transaction.
    db.own("PRAGMA foreign_keys = OFF")
    try:
        with transaction(db, write=True):
            yield
    finally:
        db.own("PRAGMA foreign_keys = ON")


def _run(db: Connection, migration: MigrationFile) -> None:
    for text in list(statements_of(migration.sql)):
        try:
            db.own(text)
        except StoreBusy:
            raise
        except StoreError as error:
            raise StoreError(
                f"{migration.path.name} failed and was rolled back, earlier ones stay applied: "
                f"{error}"
            ) from error


def _check_foreign_keys(db: Connection, migration: MigrationFile) -> None:
    if broken := db.own("PRAGMA foreign_key_check"):
        raise StoreError(
            f"{migration.path.name} failed and was rolled back: {len(broken)} rows would refer to "
            f"missing rows, the first in {broken[0][0]}"
        )


def _changed(done: AppliedMigration, files: dict[int, MigrationFile]) -> Iterator[str]:
    file = files.get(done.version)
    if file is None:
        yield f"{done.version:03}_{done.name}.sql was applied and is missing now; put it back"
    elif file.checksum != done.checksum:
        yield (
            f"{file.path.name} was changed after it was applied on {done.applied_at}; "
            "restore it, and put your change into a new migration"
        )


def read_migrations(folder: Path) -> tuple[MigrationFile, ...]:
    """Returns the migrations of a folder in order; raises `ConfigError` with every problem."""
    if not folder.is_dir():
        raise ConfigError(f"the folder of migrations {folder} does not exist")
    migrations, problems = [], []
    for path in sorted(folder.glob("*.sql")):
        name = _FILE.fullmatch(path.name)
        if name is None:
            problems.append(f"{path.name}: name it like 001_what_it_does.sql")
            continue
        try:
            migration = MigrationFile(int(name[1]), name[2], path, path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{path.name}: cannot be read ({error})")
            continue
        migrations.append(migration)
        problems += [f"{path.name}: {problem}" for problem in _problems(migration)]
    problems += _numbering_problems(migrations)
    if problems:
        raise ConfigError(f"the migrations in {folder} have problems: " + "; ".join(problems))
    return tuple(sorted(migrations, key=lambda migration: migration.version))


def _numbering_problems(migrations: Sequence[MigrationFile]) -> Iterator[str]:
    by_version: dict[int, list[str]] = {}
    # A file that was added twice under one number, as after a merge, would be applied only once.
    for migration in migrations:
        by_version.setdefault(migration.version, []).append(migration.path.name)
    for version, names in by_version.items():
        if len(names) > 1:
            yield f"number {version} is used twice ({', '.join(sorted(names))})"
    for version in range(1, max(by_version, default=0)):
        if version not in by_version:
            yield f"number {version} is missing"
    if 0 in by_version:
        yield "numbers start at 1"


def _problems(migration: MigrationFile) -> Iterator[str]:
    if not lex(migration.sql, "sqlite").bare.replace(";", "").strip():
        yield "contains no statement"
    if "\0" in migration.sql:
        yield "contains a NUL character"
    if _OWN.search(migration.sql):
        yield "uses signoff's own tables; leave them to signoff"
    try:
        statements = [lex(text, "sqlite").bare for text in statements_of(migration.sql)]
    except NotAllowed as error:
        yield str(error)
        return
    words = {match[1].lower() for text in statements if (match := _FIRST_WORD.match(text))}
    for word in sorted(words & _NOT_INSIDE):
        yield f"{word.upper()} is not allowed: each file is one transaction"


def statements_of(sql: str) -> Iterator[str]:
    """Splits a text where SQLite itself sees statements end; bodies of triggers stay whole."""
    statement = ""
    for piece in re.split(r"(?<=;)", sql):
        statement += piece
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip() and lex(statement, "sqlite").bare.strip():
        if not sqlite3.complete_statement(statement + ";"):
            raise NotAllowed("the last statement is not complete")
        yield statement
