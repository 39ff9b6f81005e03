"""Recordings: databases as a release left them in the middle of a run, stored as SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from signoff.core.errors import WriteFailed
from signoff.runtime.store_port import Commit, CommitResult
from signoff.store.connection import migrate, shipped_migrations
from signoff.store.sqlite import SqliteStore
from signoff.testing import WrappedStore

RECORDED = Path(__file__).with_name("recorded")
SCHEMA = "-- schema "


class Until(WrappedStore):
    """Fails after a number of commits, as if the process had been killed."""

    def __init__(self, inner: SqliteStore, commits: int) -> None:
        super().__init__(inner)
        self._left = commits

    def commit(self, commits: Sequence[Commit], *, wait: bool = True) -> list[CommitResult]:
        """Fails after the given number of commits."""
        if self._left == 0:
            raise WriteFailed("the process is gone")
        self._left -= 1
        return super().commit(commits, wait=wait)


def recordings_of(story: str) -> list[Path]:
    """Returns the recordings of a story by every release; there is at least one."""
    found = sorted(RECORDED.glob(f"*-{story}-*.sql"))
    assert found, f"no recording of {story!r}: run python -m tests.replay.record"
    return found


def dump(path: Path) -> str:
    """Returns the schema version and rows of a database, without the owners."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE runs SET owner = NULL")
        (version,) = db.execute("PRAGMA user_version").fetchone()
        rows = [line for line in db.iterdump() if line.startswith("INSERT INTO")]
    own = [line for line in rows if '"schema_migrations"' not in line and '"owners"' not in line]
    # A run records the folder it was started in, which exists on one machine only.
    return "\n".join([f"{SCHEMA}{version}", *own, ""]).replace(str(Path.cwd()), "/project")


def restore(recorded: Path, path: Path) -> None:
    """Creates a recorded database with the schema it had then."""
    text = recorded.read_text()
    version = int(text.splitlines()[0].removeprefix(SCHEMA))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        migrate(db, path, shipped_migrations()[:version])
        db.executescript(text)
