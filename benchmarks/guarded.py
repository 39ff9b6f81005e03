"""W8: what the guard in front of the user's database costs, compared with no guard."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.payload import text
from benchmarks.sample import Figures
from benchmarks.sizes import Scale
from signoff.contracts.guarded_db.client import SafeDatabaseClient
from signoff.contracts.guarded_db.guard import Guard
from signoff.contracts.guarded_db.staging import Committed, Marker, Postcondition
from signoff.contracts.guarded_db.verdict import Allowed

SCHEMA = """
CREATE TABLE books (id INTEGER PRIMARY KEY, chapters INTEGER NOT NULL);
CREATE TABLE chapters (id INTEGER PRIMARY KEY, book INTEGER NOT NULL, body TEXT NOT NULL);
CREATE TABLE marks (run TEXT, step TEXT, visit INTEGER, PRIMARY KEY (run, step, visit));
INSERT INTO books VALUES (1, 0);
"""
INSERT = "INSERT INTO chapters (id, book, body) VALUES (?, 1, ?)"
COUNT = "UPDATE books SET chapters = chapters + 1 WHERE id = 1"
THERE = "SELECT 1 FROM chapters WHERE id = ?"
AGREES = "SELECT 1 FROM books WHERE id = 1 AND chapters = (SELECT count(*) FROM chapters)"
MARK = "INSERT INTO marks VALUES ('run', 'step', ?)"

REPEATED = 10_000
"""How often one statement is checked again."""


async def guarded(folder: Path, scale: Scale) -> Figures:
    """W8: checking statements, and a step's transaction compared with one by hand."""
    guard = Guard("sqlite")
    began = perf_counter()
    assert isinstance(guard.verdict(AGREES), Allowed)
    first = perf_counter() - began
    began = perf_counter()
    for _ in range(REPEATED):
        guard.verdict(AGREES)
    again = (perf_counter() - began) / REPEATED

    # In turn, so that a slow disk hits both alike.
    with closing(_prepared(folder / "plain.db")) as plain:
        _prepared(folder / "guarded.db").close()
        with SafeDatabaseClient.open(folder / "guarded.db") as client:
            times = [_both(plain, client, number) for number in range(1, scale.steps + 1)]
            singles = [_single(plain, client, number) for number in range(1, scale.steps + 1)]
    by_hand, by_us = (median(column) for column in zip(*times, strict=True))
    raw_write, write, raw_read, read = (median(column) for column in zip(*singles, strict=True))
    return {
        "write_x": write / raw_write,
        "write_ms": write * 1000,
        "read_added_us": (read - raw_read) * 1_000_000,
        "first_ms": first * 1000,
        "again_us": again * 1_000_000,
        "by_hand_ms": by_hand * 1000,
        "step_ms": by_us * 1000,
        "added_ms": (by_us - by_hand) * 1000,
    }


def _both(
    plain: sqlite3.Connection, client: SafeDatabaseClient, number: int
) -> tuple[float, float]:
    # Who comes second finds the disk awake; each does half of the time.
    if number % 2:
        by_hand = _plain(plain, number)
        return by_hand, _guarded(client, number)
    by_us = _guarded(client, number)
    return _plain(plain, number), by_us


def _single(
    plain: sqlite3.Connection, client: SafeDatabaseClient, number: int
) -> tuple[float, float, float, float]:
    """Returns how long a durable write takes by hand and guarded, and a read likewise."""
    began = perf_counter()
    plain.execute("BEGIN IMMEDIATE")
    plain.execute(COUNT)
    plain.execute("COMMIT")
    raw_written = perf_counter()
    assert client.execute(COUNT).changed == 1
    written = perf_counter()
    assert plain.execute(THERE, (number,)).fetchall()
    raw_read = perf_counter()
    assert client.query(THERE, (number,))
    read = perf_counter()
    return raw_written - began, written - raw_written, raw_read - written, read - raw_read


def _prepared(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript(SCHEMA)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    return db


def _plain(db: sqlite3.Connection, number: int) -> float:
    began = perf_counter()
    db.execute("BEGIN IMMEDIATE")
    db.execute(MARK, (number,))
    db.execute(INSERT, (number, text(number)))
    db.execute(COUNT)
    assert db.execute(THERE, (number,)).fetchone()
    assert db.execute(AGREES).fetchone()
    db.execute("COMMIT")
    return perf_counter() - began


def _guarded(client: SafeDatabaseClient, number: int) -> float:
    began = perf_counter()
    work = client.staged()
    work.stage(INSERT, (number, text(number)))
    work.stage(COUNT)
    done = work.apply(
        [
            Postcondition("it is there", lambda view: view.exists(THERE, (number,))),
            Postcondition("the count agrees", lambda view: view.exists(AGREES)),
        ],
        marker=Marker("run", "step", number),
    )
    took = perf_counter() - began
    assert done == Committed(changed=2)
    return took
