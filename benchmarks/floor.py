"""The floor on SQLite: the same bytes written by hand, without an engine.

WAL, `synchronous=FULL`, one row per step. `one by one` gives every row a commit of its
own; `grouped` lets rows that are ready at the same time share one. No engine can be
faster while it promises the same.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from time import perf_counter

from benchmarks import cold, figures, sample
from benchmarks.floor_works import Row, floor_works
from benchmarks.payload import BIG_ARTIFACT, step_name, text
from benchmarks.sample import Figures
from benchmarks.sizes import Scale


class SqliteFloor:
    """A database that survives a power cut after every commit."""

    def __init__(self, folder: Path) -> None:
        self._db = sqlite3.connect(folder / "floor.db")
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        columns = "id INTEGER PRIMARY KEY, run TEXT, step TEXT, text TEXT"
        self._db.execute(f"CREATE TABLE IF NOT EXISTS steps ({columns})")
        self.close = self._db.close

    def put(self, rows: list[Row]) -> None:
        """Writes rows in one commit."""
        self._db.executemany("INSERT INTO steps (run, step, text) VALUES (?, ?, ?)", rows)
        self._db.commit()

    def add_gates(self, count: int) -> None:
        """Creates the table of runs that wait, with that many of them."""
        self._db.executescript(
            "CREATE TABLE gates (id INTEGER PRIMARY KEY, run TEXT, question TEXT, answer TEXT);"
            "CREATE INDEX waiting ON gates (id) WHERE answer IS NULL;"
            "CREATE UNIQUE INDEX gate_of_run ON gates (run);"
        )
        rows = [(f"run-{n}", "Ship this?") for n in range(count)]
        self._db.executemany("INSERT INTO gates (run, question) VALUES (?, ?)", rows)
        self._db.commit()

    def waiting(self) -> list[tuple[int, str, str]]:
        """Returns number, run and question of all that wait."""
        sql = "SELECT id, run, question FROM gates WHERE answer IS NULL"
        return self._db.execute(sql).fetchall()

    def answer(self, run: str) -> None:
        """Stores the answer to the question of a run."""
        sql = "UPDATE gates SET answer = 'yes' WHERE run = ? AND answer IS NULL"
        self._db.execute(sql, (run,))
        self._db.commit()


def history(folder: Path, scale: Scale) -> Figures:
    """W7: the artifact once, then one row and one commit per step."""
    db = SqliteFloor(folder)
    db.put([("run", "artifact", text(0, BIG_ARTIFACT))])
    marks = []
    for number in range(scale.history):
        marks.append(perf_counter())
        db.put([("run", step_name(number), text(number))])
    marks.append(perf_counter())
    db.close()
    return {**figures.growth(marks, scale), "disk_mb": figures.disk_mb(folder)}


WORKS = {
    **floor_works(SqliteFloor),
    "W6": cold.importing("import sqlite3, asyncio, json"),
    "W7": history,
}

if __name__ == "__main__":
    sample.main(WORKS)
