"""Applies numbered changes to the user's schema, each once.

What was applied is in the table `signoff_migrations`, with a digest of the file as it was. Each
file is one transaction; the first that fails is undone, and those before it stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from signoff.errors import ConfigError, StoreBusy, StoreError
from signoff.guarded_db.migration_files import MigrationFile, statements_of
from signoff.guarded_db.ports import Connection
from signoff.guarded_db.verdict import Dialect

_TABLE = """
CREATE TABLE IF NOT EXISTS signoff_migrations (
    version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL,
    applied_at TEXT NOT NULL
)
"""
_THERE: dict[Dialect, str] = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE name = 'signoff_migrations'",
    "postgres": "SELECT 1 WHERE to_regclass('signoff_migrations') IS NOT NULL",
}
_APPLIED = "SELECT version, name, checksum, applied_at FROM signoff_migrations ORDER BY version"
_IS_APPLIED = "SELECT 1 FROM signoff_migrations WHERE version = ?"
_TRACK = "INSERT INTO signoff_migrations (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)"
_LOCK_NUMBER = 0x5160FE
"""Which lock of the server is ours while migrations are applied."""


@dataclass(frozen=True)
class AppliedMigration:
    """One migration as the database remembers it."""

    version: int
    name: str
    checksum: str
    applied_at: str


@dataclass(frozen=True)
class MigrationState:
    """How far a database is."""

    applied: tuple[AppliedMigration, ...]
    pending: tuple[MigrationFile, ...]


def state(db: Connection, migrations: Sequence[MigrationFile] | None) -> MigrationState:
    """Compares the files with what was applied; refuses when an applied one was changed.

    Where nobody knows the files, there is nothing to compare.
    """
    applied = tuple(AppliedMigration(*row) for row in db.own(_APPLIED)) if _tracked(db) else ()
    if migrations is None:
        return MigrationState(applied, ())
    files = {migration.version: migration for migration in migrations}
    problems = [problem for done in applied for problem in _changed(done, files)]
    if problems:
        raise ConfigError("; ".join(problems))
    latest = max((done.version for done in applied), default=0)
    versions = {done.version for done in applied}
    pending = tuple(m for m in migrations if m.version not in versions)
    late = [m.path.name for m in pending if m.version < latest]
    if late:
        raise ConfigError(f"{', '.join(late)}: number {latest} was applied before it; renumber it")
    return MigrationState(applied, pending)


def rehearse(db: Connection, pending: Sequence[MigrationFile]) -> None:
    """Applies everything that is pending and undoes it; raises what a real run would raise."""
    rebuilding = _Rebuilding(db)
    rebuilding.begin()
    try:
        for migration in pending:
            _run(db, migration)
        rebuilding.check_keys(pending[-1] if pending else None)
    finally:
        db.rollback()
        rebuilding.end()


def migrate(db: Connection, pending: Sequence[MigrationFile]) -> tuple[MigrationFile, ...]:
    """Applies what is pending, each file in a transaction; returns what was applied here."""
    return tuple(migration for migration in pending if _apply(db, migration))


def _apply(db: Connection, migration: MigrationFile) -> bool:
    """Applies one; tells whether it was not there yet, because another process may be quicker."""
    rebuilding = _Rebuilding(db)
    rebuilding.begin()
    try:
        if db.dialect == "postgres":
            db.own("SELECT pg_advisory_xact_lock(?)", [_LOCK_NUMBER])
        db.own(_TABLE)
        if db.own(_IS_APPLIED, [migration.version]):
            return False
        _run(db, migration)
        rebuilding.check_keys(migration)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        db.own(_TRACK, [migration.version, migration.name, migration.checksum, now])
        db.commit()
    finally:
        db.rollback()
        rebuilding.end()
    return True


def _run(db: Connection, migration: MigrationFile) -> None:
    texts = list(statements_of(migration.sql)) if db.dialect == "sqlite" else [migration.sql]
    for text in texts:
        try:
            db.own(text)
        except StoreBusy:
            raise
        except StoreError as error:
            raise StoreError(
                f"{migration.path.name} failed and was undone, those before it stay applied: "
                f"{error}"
            ) from error


class _Rebuilding:
    """Holds foreign keys off while SQLite's tables are rebuilt, and checks them all at the end.

    SQLite cannot alter most of a table; it is made anew and the old one dropped, which foreign
    keys would undo or forbid.
    """

    def __init__(self, db: Connection) -> None:
        self._db = db

    def begin(self) -> None:
        if self._db.dialect == "sqlite":
            self._db.own("PRAGMA foreign_keys = OFF")
        self._db.begin(write=True)
        if self._db.dialect == "postgres":
            self._db.own("SET LOCAL statement_timeout = 0")

    def check_keys(self, migration: MigrationFile | None) -> None:
        if migration is None or self._db.dialect != "sqlite":
            return
        broken = self._db.own("PRAGMA foreign_key_check")
        if broken:
            raise StoreError(
                f"{migration.path.name} failed and was undone: {len(broken)} rows would refer to "
                f"rows that are not there, the first in {broken[0][0]}"
            )

    def end(self) -> None:
        if self._db.dialect == "sqlite":
            self._db.own("PRAGMA foreign_keys = ON")


def _tracked(db: Connection) -> bool:
    return bool(db.own(_THERE[db.dialect]))


def _changed(done: AppliedMigration, files: dict[int, MigrationFile]) -> Iterator[str]:
    file = files.get(done.version)
    if file is None:
        yield f"{done.version:03}_{done.name}.sql was applied and is gone; put it back"
    elif file.checksum != done.checksum:
        yield (
            f"{file.path.name} was changed after it was applied on {done.applied_at}; "
            "put it back as it was, and write what you want to change into a new migration"
        )
