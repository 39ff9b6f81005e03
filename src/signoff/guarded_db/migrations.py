"""Applies numbered migrations to the user's SQLite file, each once.

They are files `001_name.sql`, `002_name.sql`, numbered without gaps. The table
`signoff_migrations` lists the applied ones, with digests of the files. Each file is one
transaction; the first that fails is rolled back, and those before it stay applied.
"""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from signoff.errors import ConfigError, NotAllowed, StoreBusy, StoreError
from signoff.guarded_db.guard import lex
from signoff.guarded_db.ports import Connection, transaction
from signoff.guarded_db.verdict import OWN_TABLES

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
