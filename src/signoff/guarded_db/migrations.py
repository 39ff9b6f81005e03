"""Applies numbered migrations to the user's database, each once.

The table `signoff_migrations` lists the applied ones, with digests of the files. Each file is one
transaction; the first that fails is rolled back, and those before it stay applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from signoff.errors import ConfigError, StoreBusy, StoreError
from signoff.guarded_db.migration_files import MigrationFile, statements_of
from signoff.guarded_db.ports import Connection, GuardedTransaction

_TABLE = """
CREATE TABLE IF NOT EXISTS signoff_migrations (
    version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL,
    applied_at TEXT NOT NULL
)
"""
_APPLIED = "SELECT version, name, checksum, applied_at FROM signoff_migrations ORDER BY version"
_IS_APPLIED = "SELECT 1 FROM signoff_migrations WHERE version = ?"
_TRACK = "INSERT INTO signoff_migrations (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)"
_LOCK_NUMBER = 0x5160FE
"""The server's lock that is held while migrations are applied."""


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


def state(db: Connection, migrations: Sequence[MigrationFile] | None) -> MigrationState:
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
        if db.dialect == "postgres":
            db.own("SELECT pg_advisory_xact_lock(?)", [_LOCK_NUMBER])
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
    is_sqlite = db.dialect == "sqlite"
    # This setting cannot be changed inside a transaction.
    if is_sqlite:
        db.own("PRAGMA foreign_keys = OFF")
    try:
        with GuardedTransaction(db, write=True):
            if not is_sqlite:
                db.own("SET LOCAL statement_timeout = 0")
            yield
    finally:
        if is_sqlite:
            db.own("PRAGMA foreign_keys = ON")


def _run(db: Connection, migration: MigrationFile) -> None:
    texts = list(statements_of(migration.sql)) if db.dialect == "sqlite" else [migration.sql]
    for text in texts:
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
    broken = db.own("PRAGMA foreign_key_check") if db.dialect == "sqlite" else ()
    if broken:
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
