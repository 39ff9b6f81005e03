"""W10: what contract steps cost: each checked in a transaction, and a thousand concurrently."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from benchmarks.sample import Figures
from benchmarks.sizes import Scale
from signoff import RunResult, Status
from signoff.contracts import StepContext, define_workflow
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.store.sqlite import SqliteStore

ITEM_SECONDS = 0.01
"""As long as an item of W3 takes."""

COUNT = "UPDATE books SET chapters = chapters + 1 WHERE id = 1"


async def contract_steps(folder: Path, scale: Scale) -> Figures:
    """W10: a chain of steps without and with a database, and a fan-out with one."""
    with closing(sqlite3.connect(folder / "book.db")) as db:
        db.execute("CREATE TABLE books (id INTEGER PRIMARY KEY, chapters INTEGER NOT NULL)")
        db.execute("INSERT INTO books VALUES (1, 0)")
        db.execute("PRAGMA journal_mode = WAL")
        db.commit()
    cpu = [process_time()]
    empty = await timed(folder, "empty", chain(scale.steps, None))
    cpu.append(process_time())
    proved = await timed(folder, "proved", chain(scale.steps, folder / "book.db"))
    cpu.append(process_time())
    by_hand = _by_hand(folder / "hand.db", scale.steps)
    cpu.append(process_time())
    cpu_empty, cpu_proved, cpu_by_hand = (end - start for start, end in pairwise(cpu))
    stored = await timed(folder, "stored", _items(scale.items, folder / "book.db"))
    return {
        "empty_ms": empty / scale.steps * 1000,
        "step_ms": proved / scale.steps * 1000,
        "added_ms": (proved - empty) / scale.steps * 1000,
        "over_hand_ms": (proved - empty - by_hand) / scale.steps * 1000,
        "over_hand_cpu_ms": (cpu_proved - cpu_empty - cpu_by_hand) / scale.steps * 1000,
        "stored_s": stored,
        "stored_by_hand_s": _by_hand(folder / "items.db", scale.items),
    }


def _by_hand(path: Path, count: int) -> float:
    """Returns how long the transactions of these steps take without signoff."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("CREATE TABLE books (id INTEGER PRIMARY KEY, chapters INTEGER NOT NULL)")
        db.execute("INSERT INTO books VALUES (1, 0)")
        db.execute("CREATE TABLE marks (step INTEGER PRIMARY KEY, note TEXT)")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        began = perf_counter()
        for number in range(count):
            db.execute("BEGIN IMMEDIATE")
            db.execute("INSERT INTO marks VALUES (?, '{}')", [number])
            db.execute(COUNT)
            assert db.execute("SELECT 1 FROM books WHERE chapters > 0").fetchone()
            db.execute("COMMIT")
        return perf_counter() - began


async def contract_items(folder: Path, scale: Scale) -> Figures:
    """W10-items: a fan-out with each item checked."""
    return {"s": await timed(folder, "items", _items(scale.items, None))}


async def timed(folder: Path, name: str, workflow: Workflow) -> float:
    """Returns how long a run takes, with its journal in a SQLite file."""
    store = SqliteStore(folder / f"{name}.db")
    try:
        async with Engine(store) as engine:
            began = perf_counter()
            result = await engine.start(workflow)
            took = perf_counter() - began
    finally:
        store.close()
    _check(result)
    return took


def _check(result: RunResult) -> None:
    assert result.status is Status.COMPLETED, result.reason


def chain(
    length: int, database: Path | str | None, begin: Callable[[], Any] = lambda: None
) -> Workflow:
    """Returns one step that is visited repeatedly, with or without a database.

    `begin` is called at the beginning of each step.
    """

    def work(ctx: StepContext) -> Mapping[str, Any]:
        begin()
        number = ctx.checkpoint.data.get("number", 0) + 1
        if database is not None:
            ctx.database.stage(COUNT)  # type: ignore[union-attr]  # this workflow has one
        return {"number": number}

    def counted(ctx: StepContext) -> bool:
        agrees = "SELECT 1 FROM books WHERE id = 1 AND chapters = :number"
        return ctx.view is not None and ctx.view.exists(agrees, ctx.result)

    proofs = [{"name": "counted", "check": counted}] if database is not None else []
    return define_workflow(
        {
            "type": "chain",
            "database": _plain(database),
            "steps": [
                {
                    "name": "work",
                    "command": work,
                    "postconditions": proofs,
                    "next": {
                        "condition": lambda ctx: ctx.result["number"] >= length,
                        "on_true": "end",
                        "on_false": "work",
                        "max_iterations": 1_000_000,
                    },
                },
                {"name": "end", "command": lambda _ctx: {}},
            ],
        }
    )


def _items(count: int, database: Path | None) -> Workflow:
    """Returns one step that runs once for each of many items."""

    async def work(ctx: StepContext) -> Mapping[str, Any]:
        await asyncio.sleep(ITEM_SECONDS)
        if database is not None:
            ctx.database.stage(COUNT)  # type: ignore[union-attr]  # this workflow has one
        return {"words": ctx.item}

    return define_workflow(
        {
            "type": "items",
            "database": _plain(database),
            "steps": [
                {
                    "name": "list",
                    "command": lambda _ctx: {"all": list(range(count))},
                    "next": "work",
                },
                {
                    "name": "work",
                    "command": work,
                    "parallel": True,
                    "parallel_key": "all",
                    "postconditions": [{"name": "worked", "check": "result.words >= 0"}],
                },
            ],
        }
    )


def _plain(database: Path | str | None) -> dict[str, Any] | None:
    return {"url": str(database), "backup": False} if database is not None else None
