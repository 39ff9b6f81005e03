"""The floor on PostgreSQL: the same rows written with psycopg by hand, without an engine.

One statement and one commit per step; rows that are ready at the same time share one statement
with arrays. Texts are stored as they are, like those of the engine: the server would compress the
repetitive texts of the workloads to almost nothing, and so write a tenth to a sixth of the bytes.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from time import perf_counter
from typing import Any

import psycopg

from benchmarks import sample, stores
from benchmarks.payload import ARTIFACT, STEP_CHARS, step_name, text
from benchmarks.sample import Figures
from benchmarks.sizes import Scale

Row = tuple[str, str, str]
INSERT_MANY = """
INSERT INTO steps (run, step, text) SELECT * FROM unnest(%b::text[], %b::text[], %b::text[])
"""
Connection = psycopg.Connection[Any]


def connect(folder: Path) -> Connection:
    """Opens the schema of a folder, with the table of the floor."""
    db: Connection = psycopg.connect(stores.server_url(), autocommit=True)
    db.prepare_threshold = 1
    schema = stores.schema_of(folder)
    db.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    db.execute(f"SET search_path = {schema}")
    columns = "id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, run text, step text, text text"
    # Without a target this high, the server would move every text into a second table.
    db.execute(f"CREATE TABLE IF NOT EXISTS steps ({columns}) WITH (toast_tuple_target = 8160)")
    db.execute("ALTER TABLE steps ALTER COLUMN text SET STORAGE EXTERNAL")
    return db


def chain(folder: Path, scale: Scale, chars: int = STEP_CHARS) -> Figures:
    """W1: one statement and one commit per step."""
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
    """W2: one commit per step, one by one."""
    db = connect(folder)
    began, number = perf_counter(), 0
    for turn in range(scale.rounds):
        for name, count in (
            ("generate", 1),
            ("critic", scale.critics),
            ("judge", 1),
            ("refine", 1),
        ):
            for _ in range(count):
                _put(db, [("run", f"{name}-{turn}", text(number))])
                number += 1
    took = perf_counter() - began
    db.close()
    return {"s": took}


def fan_out(folder: Path, scale: Scale) -> Figures:
    """W3: items that end at the same time share a statement."""
    db = connect(folder)
    began = perf_counter()
    asyncio.run(_fan_out(db, scale))
    took = perf_counter() - began
    db.close()
    return {"s": took}


def many_runs(folder: Path, scale: Scale) -> Figures:
    """W4: concurrent runs whose steps share statements."""
    db = connect(folder)
    began = perf_counter()
    for step in range(scale.run_steps):
        rows = [
            (f"run-{number}", step_name(step), text(number * scale.run_steps + step))
            for number in range(scale.runs)
        ]
        _put(db, rows)
    took = perf_counter() - began
    db.close()
    return {"runs_per_s": scale.runs / took}


def prepare_gates(folder: Path, scale: Scale) -> Figures:
    """W5, before the restart: runs that wait, as rows of an indexed table."""
    db = connect(folder)
    db.execute("CREATE TABLE gates (id bigint PRIMARY KEY, run text, question text, answer text)")
    db.execute("CREATE INDEX ON gates (id) WHERE answer IS NULL")
    db.execute("CREATE UNIQUE INDEX ON gates (run)")
    insert = "INSERT INTO gates SELECT n, 'run-' || n, 'Ship this?' FROM generate_series(1, %s) n"
    db.execute(insert, [scale.gates])
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
    db.execute("UPDATE gates SET answer = 'yes' WHERE run = %s AND answer IS NULL", [run])
    _put(db, [(run, "ship", text(1))])
    resumed = perf_counter() - began
    db.close()
    return {"list_ms": listed * 1000, "resume_ms": resumed * 1000}


async def _fan_out(db: Connection, scale: Scale) -> None:
    ready: list[Row] = []

    async def item(number: int) -> None:
        await asyncio.sleep(0.01)
        ready.append(("run", step_name(number), text(number)))
        await asyncio.sleep(0)
        if ready:
            rows, ready[:] = list(ready), []
            _put(db, rows)

    await asyncio.gather(*(item(n) for n in range(scale.items)))


def _put(db: Connection, rows: list[Row]) -> None:
    if len(rows) == 1:
        db.execute("INSERT INTO steps (run, step, text) VALUES (%s, %s, %s)", rows[0])
        return
    db.execute(INSERT_MANY, [list(column) for column in zip(*rows, strict=True)])


WORKS = {
    "W1": chain,
    "W1-call": chain_with_call,
    "W2": review,
    "W3": fan_out,
    "W4": many_runs,
    "W5-prepare": prepare_gates,
    "W5": gates,
}

if __name__ == "__main__":
    sample.main(WORKS)
