"""Records the story up to several points: `python -m tests.replay.record 0.1.0`.

Run it once for a released version; existing recordings are never overwritten.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from signoff.errors import WriteFailed
from signoff.runtime import journal
from signoff.runtime.engine import Engine
from signoff.runtime.store_port import Commit, CommitResult
from signoff.store.schema import migrate, shipped_migrations
from signoff.store.sqlite import SqliteStore
from signoff.testing import FrozenClock, WrappedStore
from tests.replay.story import PARAMS, STORY, agent, tell

RECORDED = Path(__file__).with_name("recorded")
FISH, PUBLISH = "Which fish?", "Publish?"
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


async def record(path: Path, commits: int = -1, **answers: str) -> None:
    """Runs the story in a new database, up to a commit or an unanswered request."""
    inner = SqliteStore(path)
    store = Until(inner, commits)
    with suppress(WriteFailed):
        async with Engine(
            store, agents={"claude": agent("then")}, clock=FrozenClock(1_700_000_000.0)
        ) as engine:
            with suppress(WriteFailed):
                await engine.start(STORY, PARAMS, name="story")
                spoken = {FISH: answers.get("fish", ""), PUBLISH: answers.get("publish", "")}
                await tell(engine, inner, answers={k: v for k, v in spoken.items() if v})
    inner.close()


def dump(path: Path) -> str:
    """Returns the schema version and rows of a database, without the owners."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE runs SET owner = NULL")
        (version,) = db.execute("PRAGMA user_version").fetchone()
        rows = [line for line in db.iterdump() if line.startswith("INSERT INTO")]
    own = [line for line in rows if '"schema_migrations"' not in line and '"owners"' not in line]
    return "\n".join([f"{SCHEMA}{version}", *own, ""])


def restore(recorded: Path, path: Path) -> None:
    """Creates a recorded database with the schema it had then."""
    text = recorded.read_text()
    version = int(text.splitlines()[0].removeprefix(SCHEMA))
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        migrate(db, path, shipped_migrations()[:version])
        db.executescript(text)


def main() -> None:
    """Writes the recordings that do not exist yet."""
    version = sys.argv[1]
    points = {
        **{f"killed-{n:02d}": {"commits": n} for n in (2, 4)},
        "waiting": {},
        "checkpoint": {},
        **{f"killed-{n:02d}": {"commits": n, "fish": "trout"} for n in (8, 10)},
        "gate": {"fish": "trout"},
        "ended": {"fish": "trout", "publish": "yes"},
    }
    for name, given in points.items():
        target = RECORDED / f"{version}-{name}.sql"
        if target.exists():
            continue
        journal.CHECKPOINT_FROM_BYTES = 2000 if name == "checkpoint" else 256_000
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "signoff.db"
            asyncio.run(record(path, **given))  # type: ignore[arg-type]  # numbers and words
            target.write_text(dump(path))
        print(target.name)


if __name__ == "__main__":
    main()
