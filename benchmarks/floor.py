"""The floor: the same bytes written to SQLite by hand, without an engine.

WAL, `synchronous=FULL`, one row per step. `one by one` gives every row a commit of its
own; `grouped` lets rows that are ready at the same time share one. No engine can be
faster while it promises the same.
"""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from time import perf_counter

from benchmarks import cold, figures, sample
from benchmarks.payload import ARTIFACT, BIG_ARTIFACT, STEP_CHARS, step_name, text
from benchmarks.sample import Figures
from benchmarks.sizes import Scale

Row = tuple[str, str, str]
"""Run, step, text."""

INSERT = "INSERT INTO steps (run, step, text) VALUES (?, ?, ?)"


def connect(folder: Path) -> sqlite3.Connection:
    """Opens a database that survives a power cut after every commit."""
    connection = sqlite3.connect(folder / "floor.db")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(
        "CREATE TABLE IF NOT EXISTS steps (id INTEGER PRIMARY KEY, run TEXT, step TEXT, text TEXT)"
    )
    return connection


def chain(folder: Path, scale: Scale, chars: int = STEP_CHARS) -> Figures:
    """W1: one row and one commit per step."""
    db = connect(folder)
    _put(db, [("run", "artifact", text(0, ARTIFACT))])
    began = perf_counter()
    for number in range(scale.steps):
        _put(db, [("run", step_name(number), text(number, chars))])
    took = perf_counter() - began
    db.close()
    return {"ms": took / scale.steps * 1000}


def chain_with_call(folder: Path, scale: Scale) -> Figures:
    """W1 with a call: the reply and the step's own text, still one commit per step."""
    return chain(folder, scale, chars=2 * STEP_CHARS)


def review(folder: Path, scale: Scale) -> Figures:
    """W2: one commit per step, then the same with the critiques of a round in one."""
    db = connect(folder)
    apart = _review(db, scale, together=False)
    grouped = _review(db, scale, together=True)
    db.close()
    return {"s": apart, "grouped_s": grouped}


def fan_out(folder: Path, scale: Scale) -> Figures:
    """W3: items that end at the same time share a commit."""
    db = connect(folder)
    began = perf_counter()
    asyncio.run(_fan_out(db, scale))
    took = perf_counter() - began
    db.close()
    return {"s": took}


def many_runs(folder: Path, scale: Scale) -> Figures:
    """W4: concurrent runs whose steps share commits."""
    db = connect(folder)
    began = perf_counter()
    asyncio.run(_many_runs(db, scale))
    took = perf_counter() - began
    db.close()
    return {"runs_per_s": scale.runs / took, "rss_mb": figures.rss_mb()}


def prepare_gates(folder: Path, scale: Scale) -> Figures:
    """W5, before the restart: runs that wait, as rows of an indexed table."""
    db = connect(folder)
    db.executescript(
        "CREATE TABLE gates (id INTEGER PRIMARY KEY, run TEXT, question TEXT, answer TEXT);"
        "CREATE INDEX waiting ON gates (id) WHERE answer IS NULL;"
        "CREATE UNIQUE INDEX gate_of_run ON gates (run);"
    )
    rows = [(f"run-{n}", "Ship this?") for n in range(scale.gates)]
    db.executemany("INSERT INTO gates (run, question) VALUES (?, ?)", rows)
    db.commit()
    db.close()
    return {}


def gates(folder: Path, scale: Scale) -> Figures:
    """W5, after the restart: list waiting runs; answer one and record its step."""
    db = connect(folder)
    began = perf_counter()
    waiting = db.execute("SELECT id, run, question FROM gates WHERE answer IS NULL").fetchall()
    listed = perf_counter() - began
    assert len(waiting) > scale.gates // 2

    run = waiting[len(waiting) // 2][1]
    began = perf_counter()
    db.execute("UPDATE gates SET answer = 'yes' WHERE run = ? AND answer IS NULL", (run,))
    db.commit()
    _put(db, [(run, "ship", text(1))])
    resumed = perf_counter() - began
    db.close()
    return {
        "list_ms": listed * 1000,
        "resume_ms": resumed * 1000,
        "rss_mb": figures.rss_mb(),
    }


def history(folder: Path, scale: Scale) -> Figures:
    """W7: the artifact once, then one row and one commit per step."""
    db = connect(folder)
    _put(db, [("run", "artifact", text(0, BIG_ARTIFACT))])
    marks = []
    for number in range(scale.history):
        marks.append(perf_counter())
        _put(db, [("run", step_name(number), text(number))])
    marks.append(perf_counter())
    db.close()
    return {**figures.growth(marks, scale), "disk_mb": figures.disk_mb(folder)}


class _Group:
    """Commits everything that came in during one tick of the event loop together."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._rows: list[Row] = []
        self._done: asyncio.Future[None] | None = None

    def put(self, row: Row) -> asyncio.Future[None]:
        """Adds a row; the future is done when it is committed."""
        self._rows.append(row)
        if self._done is None:
            loop = asyncio.get_running_loop()
            self._done = loop.create_future()
            loop.call_soon(self._flush)
        return self._done

    def _flush(self) -> None:
        rows, done = self._rows, self._done
        self._rows, self._done = [], None
        _put(self._db, rows)
        if done is not None:
            done.set_result(None)


async def _fan_out(db: sqlite3.Connection, scale: Scale) -> None:
    group = _Group(db)

    async def item(number: int) -> None:
        await asyncio.sleep(0.01)
        await group.put(("run", step_name(number), text(number)))

    await asyncio.gather(*(item(n) for n in range(scale.items)))


async def _many_runs(db: sqlite3.Connection, scale: Scale) -> None:
    group = _Group(db)

    async def run(number: int) -> None:
        for step in range(scale.run_steps):
            words = text(number * scale.run_steps + step)
            await group.put((f"run-{number}", step_name(step), words))

    await asyncio.gather(*(run(n) for n in range(scale.runs)))


def _review(db: sqlite3.Connection, scale: Scale, *, together: bool) -> float:
    number = 0
    began = perf_counter()
    for turn in range(scale.rounds):
        for name, count in (
            ("generate", 1),
            ("critic", scale.critics),
            ("judge", 1),
            ("refine", 1),
        ):
            rows = [("run", f"{name}-{turn}", text(number + i)) for i in range(count)]
            number += count
            for commit in [rows] if together else [[row] for row in rows]:
                _put(db, commit)
    return perf_counter() - began


def _put(db: sqlite3.Connection, rows: list[Row]) -> None:
    db.executemany(INSERT, rows)
    db.commit()


WORKS = {
    "W1": chain,
    "W1-call": chain_with_call,
    "W2": review,
    "W3": fan_out,
    "W4": many_runs,
    "W5-prepare": prepare_gates,
    "W5": gates,
    "W6": cold.importing("import sqlite3, asyncio, json"),
    "W7": history,
}

if __name__ == "__main__":
    sample.main(WORKS)
