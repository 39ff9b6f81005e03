"""Brings a database file to the schema this version knows, by numbered migrations.

A new file gets all of them at once. An older one is copied aside first, then brought
forward; a newer one is refused untouched. What was applied is in `schema_migrations`.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from signoff.documents.regular_files import create_private
from signoff.errors import StoreDamaged, StoreTooNew

APPLICATION_ID = 0x5160FF
"""Written into the file's header, so another program's database is recognised."""

_TRACK = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at REAL NOT NULL
)
"""


class Migration(NamedTuple):
    """One numbered change of the schema."""

    version: int
    name: str
    sql: str


def known_migrations() -> list[Migration]:
    """Returns the migrations this version ships, in order."""
    found = []
    for entry in resources.files("signoff.store").joinpath("migrations").iterdir():
        if entry.name.endswith(".sql"):
            number, _, name = entry.name.removesuffix(".sql").partition("_")
            found.append(Migration(int(number), name, entry.read_text("utf-8")))
    return sorted(found)


def bring_forward(
    db: sqlite3.Connection, path: Path, migrations: list[Migration] | None = None
) -> None:
    """Applies what is missing, each migration and its record in one transaction."""
    version = _version(db, path)
    if version == LATEST and migrations is None:
        return
    wanted = migrations if migrations is not None else known_migrations()
    latest = wanted[-1].version
    if version > latest:
        raise StoreTooNew(
            f"{path} was written by a newer signoff (schema {version}, this one knows {latest}); "
            "upgrade signoff, or point SIGNOFF_HOME elsewhere"
        )
    if 0 < version < latest:
        _back_up(db, path, latest)
    for migration in wanted:
        _apply(db, path, migration)


def _apply(db: sqlite3.Connection, path: Path, migration: Migration) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        # Another process may have done it while this one waited for the lock.
        if _version(db, path) < migration.version:
            db.execute(_TRACK)
            for statement in _statements(migration.sql):
                db.execute(statement)
            db.execute(
                "INSERT INTO schema_migrations VALUES (?, ?, ?)",
                (migration.version, migration.name, time.time()),
            )
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {migration.version}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _statements(sql: str) -> list[str]:
    """Splits a script, so that it runs inside our transaction (executescript would end it)."""
    found, rest = [], ""
    for line in sql.splitlines(keepends=True):
        rest += line
        if sqlite3.complete_statement(rest):
            found.append(rest)
            rest = ""
    return found


def _version(db: sqlite3.Connection, path: Path) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    application: int = db.execute("PRAGMA application_id").fetchone()[0]
    tables = db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if tables and application != APPLICATION_ID:
        raise StoreDamaged(f"{path} is a database, but not one of signoff's; choose another file")
    return version


def _back_up(db: sqlite3.Connection, path: Path, latest: int) -> None:
    """Copies the file aside while nobody else can migrate it."""
    db.execute("BEGIN IMMEDIATE")
    try:
        version = _version(db, path)
        if version < latest:
            stamp = time.strftime("%Y%m%d-%H%M%S")
            _copy(path, path.with_name(f"{path.name}.v{version}-{stamp}.backup"))
    finally:
        db.execute("ROLLBACK")


def _copy(path: Path, target: Path) -> None:
    """Makes the copy under another name first: what is called a backup is a whole one."""
    # One name for all: whoever is here holds the lock, and sweeps up after one that was killed.
    draft = path.with_name(f"{path.name}.backup.part")
    draft.unlink(missing_ok=True)
    try:
        os.close(create_private(draft))
        _fill(draft, path)
        # Another process may have made the same copy in this very second; ours is as good.
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _fill(draft: Path, path: Path) -> None:
    # By a connection of its own: one that is writing cannot be copied from.
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(draft)) as copy:
        # Half a copy is thrown away, so nothing needs to be kept to undo it by.
        copy.execute("PRAGMA journal_mode = OFF")
        source.backup(copy)
    with draft.open("rb+") as file:
        os.fsync(file.fileno())


LATEST = 2
"""The newest migration's number, kept here so that opening a current file reads no others."""
