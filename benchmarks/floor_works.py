"""The workloads of a floor: the same rows written to a database by hand, without an engine.

One row and one commit per step; rows that are ready at the same time share a commit. That is what
the engine commits too: with an agent that answers at once, a reply, the end of its step and the
start of the next call are one commit. What a floor leaves out is the check that no other process
has taken over the run, and everything that is stored only to find and resume it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from time import perf_counter
from typing import Protocol

from benchmarks import figures
from benchmarks.payload import ARTIFACT, STEP_CHARS, step_name, text
from benchmarks.sample import Figures, Work
from benchmarks.sizes import Scale

Row = tuple[str, str, str]
"""Run, step, text."""


class FloorDatabase(Protocol):
    """A database of a floor."""

    def put(self, rows: list[Row]) -> None:
        """Writes rows in one commit."""
        ...

    def add_gates(self, count: int) -> None:
        """Creates the table of runs that wait, with that many of them."""
        ...

    def waiting(self) -> list[tuple[int, str, str]]:
        """Returns number, run and question of all that wait."""
        ...

    def answer(self, run: str) -> None:
        """Stores the answer to the question of a run."""
        ...

    def close(self) -> None:
        """Closes the connection."""
        ...


def floor_works(connect: Callable[[Path], FloorDatabase]) -> dict[str, Work]:
    """Returns the workloads W1 to W5 on databases that `connect` opens."""

    def opened(work: Callable[[FloorDatabase, Scale], Figures]) -> Work:
        def run(folder: Path, scale: Scale) -> Figures:
            with closing(connect(folder)) as db:
                return work(db, scale)

        return run

    return {name: opened(work) for name, work in _WORKS.items()}


def chain(db: FloorDatabase, scale: Scale, chars: int = STEP_CHARS) -> Figures:
    """W1: one row and one commit per step."""
    db.put([("run", "artifact", text(0, ARTIFACT))])
    began = perf_counter()
    for number in range(scale.steps):
        db.put([("run", step_name(number), text(number, chars))])
    return {"ms": (perf_counter() - began) / scale.steps * 1000}


def chain_with_call(db: FloorDatabase, scale: Scale) -> Figures:
    """W1 with a call: the reply and the step's own text, still one commit per step."""
    return chain(db, scale, chars=2 * STEP_CHARS)


def review(db: FloorDatabase, scale: Scale) -> Figures:
    """W2: one commit per step, then the same with the critiques of a round in one."""
    apart = _review(db, scale, together=False)
    return {"s": apart, "grouped_s": _review(db, scale, together=True)}


def fan_out(db: FloorDatabase, scale: Scale) -> Figures:
    """W3: items that end at the same time share a commit."""
    began = perf_counter()
    asyncio.run(_fan_out(db, scale))
    return {"s": perf_counter() - began}


def many_runs(db: FloorDatabase, scale: Scale) -> Figures:
    """W4: concurrent runs whose steps share commits."""
    began = perf_counter()
    asyncio.run(_many_runs(db, scale))
    took = perf_counter() - began
    return {"runs_per_s": scale.runs / took, "rss_mb": figures.rss_mb()}


def prepare_gates(db: FloorDatabase, scale: Scale) -> Figures:
    """W5, before the restart: runs that wait, as rows of an indexed table."""
    db.add_gates(scale.gates)
    return {}


def gates(db: FloorDatabase, scale: Scale) -> Figures:
    """W5, after the restart: list waiting runs; answer one and record its step."""
    began = perf_counter()
    waiting = db.waiting()
    listed = perf_counter() - began
    assert len(waiting) > scale.gates // 2

    run = waiting[len(waiting) // 2][1]
    began = perf_counter()
    db.answer(run)
    db.put([(run, "ship", text(1))])
    resumed = perf_counter() - began
    return {"list_ms": listed * 1000, "resume_ms": resumed * 1000, "rss_mb": figures.rss_mb()}


_WORKS: dict[str, Callable[[FloorDatabase, Scale], Figures]] = {
    "W1": chain,
    "W1-call": chain_with_call,
    "W2": review,
    "W3": fan_out,
    "W4": many_runs,
    "W5-prepare": prepare_gates,
    "W5": gates,
}


class _Group:
    """Commits everything that came in during one tick of the event loop together."""

    def __init__(self, db: FloorDatabase) -> None:
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
        self._db.put(rows)
        if done is not None:
            done.set_result(None)


async def _fan_out(db: FloorDatabase, scale: Scale) -> None:
    group = _Group(db)

    async def item(number: int) -> None:
        await asyncio.sleep(0.01)
        await group.put(("run", step_name(number), text(number)))

    await asyncio.gather(*(item(n) for n in range(scale.items)))


async def _many_runs(db: FloorDatabase, scale: Scale) -> None:
    group = _Group(db)

    async def run(number: int) -> None:
        for step in range(scale.run_steps):
            words = text(number * scale.run_steps + step)
            await group.put((f"run-{number}", step_name(step), words))

    await asyncio.gather(*(run(n) for n in range(scale.runs)))


def _review(db: FloorDatabase, scale: Scale, *, together: bool) -> float:
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
                db.put(commit)
    return perf_counter() - began
