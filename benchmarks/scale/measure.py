"""Measures what each operation costs a worker and a real PostgreSQL server.

Processor time is read from the operating system, for the server's processes and for this one, so
a machine that is busy with something else makes it slower and not more expensive.
"""

from __future__ import annotations

import asyncio
import os
import platform
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # it brings no types
import psycopg

from benchmarks import figures
from benchmarks.engine import AGENT, AtOnce
from benchmarks.scale.costs import Cost, Costs
from benchmarks.stores import DURABLE
from signoff import Outcome, Status, StepContext, StepDef, Workflow
from signoff.core.step import Result
from signoff.runtime.engine import Engine
from signoff.runtime.owner import is_alive, this_process
from signoff.runtime.store_port import Store
from signoff.store.postgres.store import PostgresStore
from tests.store_suite.journal_writer import JournalWriter
from tests.stubs.postgres import PostgresServer, running_server

RUNS = 100
"""Runs that are driven for each figure, four at once, as a worker does."""

SHORT, LONG = 1, 9
"""Calls of the runs: the difference is what a call costs, the rest what a run costs."""

FEW, MANY = 300, 3000
"""Queued runs while claims are measured: the difference is what each of them adds."""

CLAIMS = 60
LOOKS = {"poll": 4000, "look": 4000, "beat": 400, "claim_empty": 1000}
SLOTS = 4

TEMPORAL_RUN = 0.07
"""Of Temporal's development server with a file, for a run of ten calls, measured earlier; it is
measured where Temporal is, and not here."""


@dataclass
class Spent:
    """What some work cost."""

    server: float = 0.0
    own: float = 0.0
    wall: float = 0.0

    def per(self, count: int) -> Cost:
        """Returns the cost of one of `count` equal operations."""
        delay = max(0.0, self.wall - self.server - self.own)
        return Cost(self.server / count, self.own / count, delay / count)


def measure() -> Costs:
    """Starts a server and measures everything, in about a minute."""
    with running_server({**DURABLE, "max_connections": "30"}) as server:
        with closing(PostgresStore(server.new_schema())) as store:
            looks = {name: _looks(server, store, name) for name in LOOKS}
            short, long = (_driven(server, calls) for calls in (SHORT, LONG))
        few, many = (_claims(server, queued) for queued in (FEW, MANY))
        version = psycopg.connect(server.url()).execute("SHOW server_version").fetchone()
    call = _difference(long, short, LONG - SHORT)
    per_queued = max(0.0, many.database - few.database) / (MANY - FEW)
    return Costs(
        run=_remainder(short, call, SHORT),
        call=call,
        claim=replace(few, database=max(0.0, few.database - per_queued * FEW)),
        claim_queued=per_queued,
        temporal_run=TEMPORAL_RUN,
        worker_mb=figures.rss_mb(),
        measured={
            "at": time.strftime("%Y-%m-%d %H:%M"),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}",
            "load": f"{os.getloadavg()[0]:.1f}",
            "postgresql": str(version[0] if version else ""),
        },
        **looks,
    )


def _difference(more: Cost, less: Cost, count: int) -> Cost:
    values = [max(0.0, a - b) / count for a, b in zip(_values(more), _values(less), strict=True)]
    return Cost(*values)


def _remainder(whole: Cost, part: Cost, count: int) -> Cost:
    pairs = zip(_values(whole), _values(part), strict=True)
    return Cost(*(max(0.0, a - b * count) for a, b in pairs))


def _values(cost: Cost) -> tuple[float, float, float]:
    return cost.database, cost.worker, cost.delay


# Operations


def _looks(server: PostgresServer, store: Store, name: str) -> Cost:
    owner = this_process()
    operations: dict[str, Callable[[], object]] = {
        "poll": store.changes,
        "look": lambda: store.cancels(owner),
        "beat": lambda: store.beat(owner),
        "claim_empty": lambda: store.claim(owner, [], is_alive, SLOTS),
    }
    operation = operations[name]
    operation()
    with _spent(server) as spent:
        for _ in range(LOOKS[name]):
            operation()
    return spent.per(LOOKS[name])


def _claims(server: PostgresServer, queued: int) -> Cost:
    with closing(PostgresStore(server.new_schema())) as store:
        commits = [
            JournalWriter(store, f"run-{number}").first(
                needs=(), status=Status.QUEUED, release=True
            )
            for number in range(queued)
        ]
        for start in range(0, queued, 100):
            store.commit(commits[start : start + 100])
        with psycopg.connect(server.url(), autocommit=True) as db:
            db.execute("ANALYZE")
        with _spent(server) as spent:
            for _ in range(CLAIMS):
                assert len(store.claim(this_process(), [], is_alive, SLOTS)) == SLOTS
    return spent.per(CLAIMS)


def _driven(server: PostgresServer, calls: int) -> Cost:
    """Drives runs of some calls that return at once."""
    with closing(PostgresStore(server.new_schema())) as store:
        return asyncio.run(_drive(server, store, calls))


async def _drive(server: PostgresServer, store: Store, calls: int) -> Cost:
    workflow = calling_workflow(calls)
    async with Engine(store) as engine:
        names = [f"run-{number}" for number in range(RUNS)]
        starts = (engine.start(workflow, name=name, needs=()) for name in names)
        await asyncio.gather(*starts)
        slots = asyncio.Semaphore(SLOTS)

        async def resume(name: str) -> None:
            async with slots:
                result = await engine.resume(name, workflow)
                assert result.status is Status.COMPLETED, result.reason

        with _spent(server) as spent:
            await asyncio.gather(*map(resume, names))
    # Four runs wait at the same time, so each waits four times as long as the share of it.
    cost = spent.per(RUNS)
    wall = spent.wall * SLOTS / RUNS
    return replace(cost, delay=max(0.0, wall - SLOTS * (cost.database + cost.worker)))


def calling_workflow(calls: int) -> Workflow:
    """Returns a workflow that asks an agent, one call after the other."""

    async def work(ctx: StepContext) -> Result:
        for number in range(calls):
            await ctx.ask(AGENT, f"Part {number}.")
        return Outcome.OK, {}

    step = StepDef("work", handler=work, next={Outcome.OK: None})
    return Workflow("calls", step, agents={AGENT: AtOnce()})


# Processor time


@contextmanager
def _spent(server: PostgresServer) -> Iterator[Spent]:
    spent = Spent()
    before, own, began = _server_seconds(server), time.process_time(), time.perf_counter()
    yield spent
    spent.wall = time.perf_counter() - began
    spent.own = time.process_time() - own
    spent.server = _server_seconds(server) - before


def _server_seconds(server: PostgresServer) -> float:
    """Returns the processor time of all processes of a server, also of those that have ended."""
    pid = int((Path(server.folder) / "data" / "postmaster.pid").read_text().split()[0])
    main = psutil.Process(pid)
    total = 0.0
    for process in (main, *main.children(recursive=True)):
        times = process.cpu_times()
        total += times.user + times.system
        if process is main:
            total += times.children_user + times.children_system
    return total
