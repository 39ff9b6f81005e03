"""`python -m benchmarks.guarded_postgres`: the works W8 and W10 on a PostgreSQL database.

A real server is started on this machine, with its usual guarantees: every commit reaches the disk.
By hand and guarded work take turns, each on a connection of its own, with prepared statements.

By hand, a step is what a careful engineer would write for the same promise: one transaction that
inserts a row saying that the step is done, makes the change, reads what must hold and commits. In a
chain, the progress of the run is also recorded in a SQLite file that reaches the disk after each
step, as signoff's journal does. Both chains run with and without the database; the difference is
what the database adds to a step. Only steady steps count: neither side's figures contain the time
in which connections are opened and statements are seen for the first time.

By hand, statements are not checked, a condition that hangs is not abandoned, the result of a step
is not stored, and a backup that is restored under a run goes unnoticed.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import psycopg

from benchmarks.contract_steps import COUNT, chain, timed
from benchmarks.stores import DURABLE
from benchmarks.table import number, table
from signoff.contracts.guarded_db.client import SafeDatabaseClient
from signoff.contracts.guarded_db.staging import Marker, Postcondition

SCHEMA = """
CREATE TABLE books (id integer PRIMARY KEY, chapters integer NOT NULL);
CREATE TABLE marks (step integer PRIMARY KEY, note text);
INSERT INTO books VALUES (1, 0);
"""
THERE = "SELECT chapters FROM books WHERE id = $1"
MARK = "INSERT INTO marks VALUES ($1, '{}')"
WARM_UP = 10
"""Calls and steps that come first and do not count."""
ROUNDS = 3
"""How often each chain is run."""

Connection = psycopg.Connection[Any]


@dataclass
class Sample:
    """The seconds that each of many calls took."""

    walls: list[float] = field(default_factory=list)
    cpus: list[float] = field(default_factory=list)
    """CPU time of this process, which the server's is not part of."""

    def add(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Adds a call by its moments."""
        self.walls.append(end[0] - start[0])
        self.cpus.append(end[1] - start[1])

    def add_steps(self, moments: list[tuple[float, float]]) -> None:
        """Adds the steady steps of a chain by the moments at which they began."""
        for start, end in pairwise(moments[WARM_UP:]):
            self.add(start, end)


@dataclass(frozen=True)
class Times:
    """Seconds of a typical call."""

    wall: float
    best: float
    cpu: float

    @classmethod
    def of(cls, sample: Sample) -> Times:
        """Returns the medians, and the best time."""
        return cls(median(sample.walls), min(sample.walls), median(sample.cpus))

    def __sub__(self, other: Times) -> Times:
        """Returns how much longer it takes than another."""
        return Times(self.wall - other.wall, self.best - other.best, self.cpu - other.cpu)


def main() -> int:
    """Measures all and prints the table."""
    from tests.stubs.postgres import running_server

    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.guarded_postgres", description=__doc__
    )
    parser.add_argument("--steps", type=int, default=200, help="how often each is done (200)")
    steps = parser.parse_args().steps
    with running_server(DURABLE) as server, tempfile.TemporaryDirectory() as folder:
        url = server.new_database()
        with psycopg.connect(url, autocommit=True, cursor_factory=psycopg.RawCursor) as plain:
            plain.prepare_threshold = 1
            plain.execute(SCHEMA)
            rows = _transactions(plain, url, steps)
            rows += _chains(plain, url, Path(folder), steps)
    head = ("work", "", "by hand", "guarded", "more", "target", "more at best", "CPU time more")
    print(table(head, rows))
    return 0


def _transactions(plain: Connection, url: str, steps: int) -> list[list[str]]:
    with SafeDatabaseClient.open(url) as client:
        works: dict[str, tuple[Callable[[int], Any], Callable[[int], Any], str]] = {
            "a durable write": (
                lambda _n: _write(plain),
                lambda _n: client.execute(COUNT),
                "1.5 x",
            ),
            "a read": (
                lambda _n: plain.execute(THERE, [1]).fetchall(),
                lambda _n: client.query(THERE, [1]),
                "+ 0.1 ms",
            ),
            "a step's transaction": (
                lambda n: _by_hand(plain, n),
                lambda n: _step(client, n),
                "+ 1 ms",
            ),
        }
        return [
            _row("W8", title, *_in_turn(by_hand, guarded, steps), target)
            for title, (by_hand, guarded, target) in works.items()
        ]


def _in_turn(
    by_hand: Callable[[int], Any], guarded: Callable[[int], Any], steps: int
) -> tuple[Times, Times]:
    """Returns the times of both; a busy server hits both alike."""
    samples = Sample(), Sample()
    for n in range(WARM_UP + steps):
        for call, sample in zip((by_hand, guarded), samples, strict=True):
            start = _now()
            call(n)
            if n >= WARM_UP:
                sample.add(start, _now())
    return Times.of(samples[0]), Times.of(samples[1])


def _chains(plain: Connection, url: str, folder: Path, steps: int) -> list[list[str]]:
    """Returns the rows of a chain of contract steps."""
    length = WARM_UP + steps
    chains: dict[str, Callable[[Path, list[tuple[float, float]]], Any]] = {
        "by hand, recorded only": lambda file, begun: _hand_chain(file, None, length, begun),
        "recorded only": lambda file, begun: _chain(file, None, length, begun),
        "by hand": lambda file, begun: _hand_chain(file, plain, length, begun),
        "guarded": lambda file, begun: _chain(file, url, length, begun),
    }
    samples = {name: Sample() for name in chains}
    for turn in range(ROUNDS):
        for name, run in chains.items():
            # The steps count from the start, and use other marks.
            plain.execute("UPDATE books SET chapters = 0")
            plain.execute("DELETE FROM marks")
            begun: list[tuple[float, float]] = []
            run(folder / f"{name} {turn}", begun)
            samples[name].add_steps(begun)
    times = {name: Times.of(sample) for name, sample in samples.items()}
    by_hand = times["by hand"] - times["by hand, recorded only"]
    guarded = times["guarded"] - times["recorded only"]
    return [
        _row("W10", "what the database adds to a step in a chain", by_hand, guarded, "+ 1 ms"),
        _row("W10", "the whole step", times["by hand"], times["guarded"], ""),
    ]


def _chain(file: Path, url: str | None, length: int, begun: list[tuple[float, float]]) -> None:
    workflow = chain(length, url, lambda: begun.append(_now()))
    asyncio.run(timed(file.parent, file.name, workflow))


def _hand_chain(
    file: Path, plain: Connection | None, length: int, begun: list[tuple[float, float]]
) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as journal:
        journal.execute("PRAGMA journal_mode = WAL")
        journal.execute("PRAGMA synchronous = FULL")
        journal.execute("CREATE TABLE progress (step INTEGER PRIMARY KEY, result TEXT)")
        for step in range(length):
            begun.append(_now())
            if plain is not None:
                _by_hand(plain, step)
            journal.execute("INSERT INTO progress VALUES (?, '{}')", [step])


def _now() -> tuple[float, float]:
    return perf_counter(), process_time()


def _row(work: str, title: str, by_hand: Times, guarded: Times, target: str) -> list[str]:
    more = guarded - by_hand
    return [
        work,
        title,
        number(by_hand.wall * 1000, "ms"),
        number(guarded.wall * 1000, "ms"),
        f"{number(more.wall * 1000, 'ms')} ({guarded.wall / by_hand.wall:.2f} x)",
        target,
        number(more.best * 1000, "ms"),
        number(more.cpu * 1000, "ms"),
    ]


def _write(plain: Connection) -> None:
    plain.execute("BEGIN")
    plain.execute(COUNT)
    plain.execute("COMMIT")


def _by_hand(plain: Connection, step: int) -> None:
    plain.execute("BEGIN")
    plain.execute(MARK, [step])
    plain.execute(COUNT)
    assert plain.execute(THERE, [1]).fetchone()
    plain.execute("COMMIT")


def _step(client: SafeDatabaseClient, step: int) -> None:
    work = client.staged()
    work.stage(COUNT)
    condition = Postcondition("counted", lambda view: view.exists(THERE, [1]))
    work.apply([condition], marker=Marker("run", "step", step))


if __name__ == "__main__":
    raise SystemExit(main())
