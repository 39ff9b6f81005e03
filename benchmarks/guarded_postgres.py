"""`python -m benchmarks.guarded_postgres`: the works W8 and W10 on a PostgreSQL database.

A real server is started on this machine, with its usual guarantees: every commit reaches the disk.
By hand and guarded transactions take turns, each on a connection of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import psycopg

from benchmarks.contract_steps import COUNT, chain, timed
from benchmarks.stores import DURABLE
from benchmarks.table import number, table
from signoff.guarded_db.client import SafeDatabaseClient
from signoff.guarded_db.postconditions import Postcondition
from signoff.guarded_db.staging import Marker

SCHEMA = """
CREATE TABLE books (id integer PRIMARY KEY, chapters integer NOT NULL);
CREATE TABLE marks (step integer PRIMARY KEY, note text);
INSERT INTO books VALUES (1, 0);
"""
THERE = "SELECT chapters FROM books WHERE id = $1"
MARK = "INSERT INTO marks VALUES ($1, '{}')"

Connection = psycopg.Connection[Any]
Times = tuple[float, float]
"""Elapsed time and CPU time of this process, which the server's is not part of."""


def main() -> int:
    """Measures both and prints the table."""
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
    head = ("work", "", "by hand", "guarded", "more", "target", "CPU time more")
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


def _chains(plain: Connection, url: str, folder: Path, steps: int) -> list[list[str]]:
    """Returns the row of a chain of contract steps: what a transaction adds to each step."""
    plain.execute("UPDATE books SET chapters = 0")
    empty = _timed(lambda: asyncio.run(timed(folder, "empty", chain(steps, None))))
    proved = _timed(lambda: asyncio.run(timed(folder, "proved", chain(steps, url))))
    by_hand = _timed(lambda: _all_by_hand(plain, steps))
    added = proved[0] - empty[0], proved[1] - empty[1]
    each = [(wall / steps, cpu / steps) for wall, cpu in (by_hand, added)]
    return [_row("W10", "the same in a chain of contract steps", each[0], each[1], "+ 1 ms")]


def _in_turn(
    by_hand: Callable[[int], Any], guarded: Callable[[int], Any], steps: int
) -> tuple[Times, Times]:
    """Returns the medians of both; a busy server hits both alike."""
    by_hand(0), guarded(0)
    pairs = [
        (_timed(lambda n=n: by_hand(n)), _timed(lambda n=n: guarded(n)))  # type: ignore[misc]  # a default
        for n in range(1, steps + 1)
    ]
    hand, ours = zip(*pairs, strict=True)
    return _median(hand), _median(ours)


def _median(times: tuple[Times, ...]) -> Times:
    return median(wall for wall, _cpu in times), median(cpu for _wall, cpu in times)


def _timed(call: Callable[[], Any]) -> Times:
    began, cpu = perf_counter(), process_time()
    call()
    return perf_counter() - began, process_time() - cpu


def _row(work: str, title: str, by_hand: Times, guarded: Times, target: str) -> list[str]:
    walls, more, cpu = by_hand[0], guarded[0] - by_hand[0], guarded[1] - by_hand[1]
    return [
        work,
        title,
        number(walls * 1000, "ms"),
        number(guarded[0] * 1000, "ms"),
        f"{number(more * 1000, 'ms')} ({guarded[0] / walls:.2f} x)",
        target,
        number(cpu * 1000, "ms"),
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


def _all_by_hand(plain: Connection, steps: int) -> None:
    for step in range(-steps, 0):
        _by_hand(plain, step)


def _step(client: SafeDatabaseClient, step: int) -> None:
    work = client.staged()
    work.stage(COUNT)
    condition = Postcondition("counted", lambda view: view.exists(THERE, [1]))
    work.apply([condition], marker=Marker("run", "step", step))


if __name__ == "__main__":
    raise SystemExit(main())
