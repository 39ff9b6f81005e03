"""DBOS on PostgreSQL: a workflow of steps, each of which is recorded before the next begins."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter

from dbos import DBOS

from benchmarks import figures, sample, stores
from benchmarks.payload import ARTIFACT, text
from benchmarks.sample import Figures
from benchmarks.sizes import Scale


@contextmanager
def launched(folder: Path) -> Iterator[None]:
    """Starts DBOS in a schema that stands for the folder."""
    DBOS(
        config={
            "name": "bench",
            "system_database_url": stores.server_url().replace(
                "postgresql:", "postgresql+psycopg:"
            ),
            "dbos_system_schema": stores.schema_of(folder),
            "log_level": "ERROR",
        }
    )
    DBOS.launch()
    try:
        yield
    finally:
        DBOS.destroy()


@DBOS.step()
def work(number: int) -> str:
    """Returns what a step returns."""
    return text(number)


@DBOS.step()
async def work_async(number: int, seconds: float) -> str:
    """The same, on the event loop."""
    if seconds:
        await asyncio.sleep(seconds)
    return text(number)


@DBOS.workflow()
def chained(artifact: str, steps: int, per_step: int) -> int:
    """One step after the other; a call is a step of its own, so that it is recorded."""
    done = 0
    for number in range(steps):
        for part in range(per_step):
            done += bool(work(number + part))
    return done if artifact else 0


@DBOS.workflow()
async def fanned(items: int) -> int:
    """All items at the same time."""
    texts = await asyncio.gather(*(work_async(number, 0.01) for number in range(items)))
    return len(texts)


@DBOS.workflow()
async def short(number: int, steps: int) -> int:
    """One of many runs."""
    for step in range(steps):
        await work_async(number * steps + step, 0.0)
    return steps


def chain(folder: Path, scale: Scale, *, per_step: int = 1) -> Figures:
    """W1: one step after the other."""
    with launched(folder):
        artifact = text(0, ARTIFACT)
        began = perf_counter()
        assert chained(artifact, scale.steps, per_step) == scale.steps * per_step
        took = perf_counter() - began
    return {"ms": took / scale.steps * 1000}


def chain_with_call(folder: Path, scale: Scale) -> Figures:
    """W1 with a call in each step."""
    return chain(folder, scale, per_step=2)


def fan_out(folder: Path, scale: Scale) -> Figures:
    """W3: items as concurrent steps."""

    async def run() -> float:
        began = perf_counter()
        assert await fanned(scale.items) == scale.items
        return perf_counter() - began

    with launched(folder):
        return {"s": asyncio.run(run())}


def many_runs(folder: Path, scale: Scale) -> Figures:
    """W4: many workflows at the same time."""

    async def run() -> float:
        began = perf_counter()
        await asyncio.gather(*(short(number, scale.run_steps) for number in range(scale.runs)))
        return perf_counter() - began

    with launched(folder):
        took = asyncio.run(run())
    return {"runs_per_s": scale.runs / took, "rss_mb": figures.rss_mb()}


WORKS = {"W1": chain, "W1-call": chain_with_call, "W3": fan_out, "W4": many_runs}

if __name__ == "__main__":
    sample.main(WORKS)
