"""Brings a database file to the current schema, by numbered migrations.

A new file gets all of them. An older file is backed up first and then migrated; a newer
one is refused and left untouched. `schema_migrations` lists what was applied.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from signoff.documents.regular_files import create_private
from signoff.errors import StoreDamaged, StoreTooNew

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

APPLICATION_ID = 0x5160FF
"""Written into the file's header, so that another program's database is recognized."""

_CREATE_TRACKING_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at REAL NOT NULL
)
"""


class Migration(NamedTuple):
    """One numbered change of the schema."""

    version: int
    name: str
    sql: str


def shipped_migrations() -> list[Migration]:
    """Returns the migrations this version ships, in order."""
    return read_migrations(resources.files("signoff.store").joinpath("migrations"))


def read_migrations(folder: Traversable) -> list[Migration]:
    """Returns the migrations in a folder of a package, in order."""
    migrations = []
    for entry in folder.iterdir():
        if entry.name.endswith(".sql"):
            number, _, name = entry.name.removesuffix(".sql").partition("_")
            migrations.append(Migration(int(number), name, entry.read_text("utf-8")))
    return sorted(migrations)


def migrate(db: sqlite3.Connection, path: Path, migrations: list[Migration] | None = None) -> None:
    """Applies the missing migrations in one transaction, together with their records."""
    version = _version(db, path)
    if version == LATEST and migrations is None:
        return
    target = migrations if migrations is not None else shipped_migrations()
    latest = target[-1].version
    if version > latest:
        raise StoreTooNew(
            f"{path} was written by a newer signoff (tables version {version}; this one "
            f"has {latest}); upgrade signoff and start it again, or set SIGNOFF_HOME to another "
            "folder"
        )
    if version < latest:
        _apply(db, path, target)


def _apply(db: sqlite3.Connection, path: Path, migrations: list[Migration]) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have applied them while this one waited for the lock.
        version = _version(db, path)
        missing = [migration for migration in migrations if migration.version > version]
        if version and missing:
            _back_up(path, version)
        db.execute(_CREATE_TRACKING_TABLE)
        for migration in missing:
            _apply_one(db, migration)
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _apply_one(db: sqlite3.Connection, migration: Migration) -> None:
    for statement in _statements(migration.sql):
        db.execute(statement)
    db.execute(
        "INSERT INTO schema_migrations VALUES (?, ?, ?)",
        (migration.version, migration.name, time.time()),
    )
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {migration.version}")


def _statements(sql: str) -> list[str]:
    """Splits a script, so that it runs inside our transaction (`executescript` would end it)."""
    statements, pending = [], ""
    for line in sql.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            statements.append(pending)
            pending = ""
    return statements


def _version(db: sqlite3.Connection, path: Path) -> int:
    # The tables first: another process may create them together with the two numbers right now.
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    application: int = db.execute("PRAGMA application_id").fetchone()[0]
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    if tables and application != APPLICATION_ID:
        raise StoreDamaged(f"{path} is a database of another program; choose another file")
    return version


def _back_up(path: Path, version: int) -> None:
    """Copies under a temporary name first, so that a file called backup is always complete."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    # The name is fixed: only the process with the lock gets here, and it removes what a killed
    # process left behind.
    draft = path.with_name(f"{path.name}.backup.part")
    draft.unlink(missing_ok=True)
    try:
        os.close(create_private(draft))
        _copy_content(draft, path)
        # A migration that fails is tried again; within one second both copies are the same.
        draft.replace(path.with_name(f"{path.name}.v{version}-{stamp}.backup"))
    finally:
        draft.unlink(missing_ok=True)


def _copy_content(draft: Path, path: Path) -> None:
    # Use a separate connection: SQLite cannot copy from one that is inside a write transaction.
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(draft)) as copy:
        # An incomplete copy is deleted, so it needs no rollback journal.
        copy.execute("PRAGMA journal_mode = OFF")
        source.backup(copy)
    with draft.open("rb+") as file:
        os.fsync(file.fileno())


LATEST = 1
"""The newest migration's number, here so that opening a current file reads no SQL files."""
