"""Real workers on a real PostgreSQL server, with calls that only wait."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # it brings no types

from benchmarks.stores import DURABLE
from signoff.app.runs.run_records import living_workers
from signoff.app.runs.start import plan
from signoff.app.settings.project import Project, open_project
from signoff.core.outcome import Status
from tests.stubs.postgres import running_server

FLOW = """
import asyncio
from signoff import Outcome, Reply, StepDef, Workflow

class Slow:
    async def ask(self, request, call):
        await asyncio.sleep({seconds})
        return Reply("done " * 400)

async def work(ctx):
    for number in range({calls}):
        await ctx.ask("slow", f"Part {{number}}.")
    return Outcome.OK, {{}}

FLOW = Workflow("calls", StepDef("work", handler=work, next={{Outcome.OK: None}}),
                agents={{"slow": Slow()}})
"""

PATIENCE_SECONDS = 120.0


@dataclass(frozen=True)
class Measured:
    """What real workers did."""

    workers: int
    runs: int
    seconds: float
    cpu_seconds: float
    """Of all workers together."""
    memory_mb: float
    """Of one worker."""

    @property
    def per_second(self) -> float:
        """Runs that ended in a second."""
        return self.runs / self.seconds


def measure_workers(
    counts: list[int], *, slots: int, calls: int, call_seconds: float, waves: int
) -> list[Measured]:
    """Measures one number of workers after the other; each worker gets as many runs."""
    with running_server({**DURABLE, "max_connections": "100"}) as server:
        return [
            _measure(server.new_schema(), count, slots, calls, call_seconds, waves)
            for count in counts
        ]


def _measure(
    url: str, count: int, slots: int, calls: int, call_seconds: float, waves: int
) -> Measured:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "flow.py").write_text(FLOW.format(seconds=call_seconds, calls=calls))
        environment = {"XDG_CONFIG_HOME": str(root / "none")}
        with open_project(root, environment, create=True) as project:
            project.home.config.write_text(f"database: {url}\n")
        with (
            open_project(root, environment) as project,
            _workers(root, environment, count, slots) as processes,
        ):
            _wait(lambda: len(living_workers(project.store)) == count, "the workers")
            names = [f"run-{number}" for number in range(count * slots * waves)]
            before = _cpu(processes)
            began = time.perf_counter()
            asyncio.run(_queue(project, environment, names))
            done = [Status.COMPLETED]
            _wait(lambda: len(project.store.rows(status=done)) == len(names), "the runs")
            seconds = time.perf_counter() - began
            memory = max(each.memory_info().rss for each in processes) / 1e6
            return Measured(count, len(names), seconds, _cpu(processes) - before, memory)


async def _queue(project: Project, environment: dict[str, str], names: list[str]) -> None:
    """Hands all runs over at once, as many users together would."""
    target = plan(project.home.root, environment, "flow.py:FLOW", {}).target
    async with project.engine() as engine:
        starts = (
            engine.start(target.workflow, {}, name=name, target=target.location, needs=())
            for name in names
        )
        await asyncio.gather(*starts)


@contextmanager
def _workers(
    root: Path, environment: dict[str, str], count: int, slots: int
) -> Iterator[list[psutil.Process]]:
    command = [sys.executable, "-m", "signoff", "worker", "--slots", str(slots)]
    started = [
        subprocess.Popen(
            command,
            cwd=root,
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for _ in range(count)
    ]
    try:
        yield [psutil.Process(each.pid) for each in started]
    finally:
        for each in started:
            each.terminate()
        for each in started:
            each.wait(PATIENCE_SECONDS)


def _cpu(processes: list[psutil.Process]) -> float:
    times = [each.cpu_times() for each in processes]
    return float(sum(each.user + each.system for each in times))


def _wait(condition: Callable[[], bool], what: str) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"waited too long for {what}")
        time.sleep(0.05)
