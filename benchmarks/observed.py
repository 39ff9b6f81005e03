"""W12 and W13: what a log file and notifications, and traces, add to the review loop of W2.

Both are measured in turn in one process, so that other load affects them equally. Two figures:
the time until the run has ended, and the CPU time that all threads took in addition, as a part of
the loop's time; that one hardly depends on how busy the machine is. Critics answer after a while
here, as W9's do: a real call takes seconds, and a loop without any would be compared with nothing
but the engine's own work.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

from benchmarks.engine import AGENT, review_workflow
from benchmarks.payload import text
from benchmarks.sample import Figures
from benchmarks.sizes import FULL, Scale
from signoff import AgentRequest, Reply, Status
from signoff.app.runs.run_records import stored_record
from signoff.runtime.engine import Engine
from signoff.runtime.ports import Call
from signoff.store.sqlite import SqliteStore
from signoff.views.notifications import Notifier
from signoff.views.otel import otel_observer
from signoff.views.queued import ObserverSetup, QueuedObserver, close_observers
from signoff.views.run_log import LogOutput

THINKS_SECONDS = 0.02

NO_COLLECTOR = "http://127.0.0.1:9"
"""Nothing listens there."""


class Slow:
    """Answers after a while with a different text."""

    def __init__(self) -> None:
        self._asked = 0

    async def ask(self, _request: AgentRequest, _call: Call) -> Reply:
        """Returns the next text."""
        self._asked += 1
        await asyncio.sleep(THINKS_SECONDS)
        return Reply(text(self._asked))


Observers = Callable[[SqliteStore, Path], list[QueuedObserver]]


async def observed(folder: Path, scale: Scale) -> Figures:
    """W12: the loop with a log and notifications compared with the loop without."""
    return await _compared(folder, scale, _log_and_notify)


async def traced(folder: Path, scale: Scale) -> Figures:
    """W13: the loop with traces to a collector that is down compared with the loop without."""
    return await _compared(folder, scale, _trace_to_nowhere)


async def _compared(folder: Path, scale: Scale, observers: Observers) -> Figures:
    pairs = 5 if scale == FULL else 1
    seconds: dict[bool, list[float]] = {False: [], True: []}
    cpu: dict[bool, list[float]] = {False: [], True: []}
    with closing(SqliteStore(folder / "signoff.db")) as store:
        for number in range(2 * pairs):
            on = bool(number % 2)
            watching = observers(store, folder) if on else []
            took, worked = await _loop(store, watching, scale, f"run-{number}")
            seconds[on].append(took)
            cpu[on].append(worked)
    return {
        "s": median(seconds[True]),
        "ratio": median(seconds[True]) / median(seconds[False]),
        "cpu_pct": 100 * (median(cpu[True]) - median(cpu[False])) / median(seconds[False]),
    }


async def _loop(
    store: SqliteStore, watching: Sequence[QueuedObserver], scale: Scale, name: str
) -> tuple[float, float]:
    """Drives one run; returns its seconds, and the CPU seconds until all observers are done."""
    params = {"rounds": scale.rounds, "critics": scale.critics}
    async with Engine(store, agents={AGENT: Slow()}, observers=watching) as engine:
        began, worked = perf_counter(), process_time()
        result = await engine.start(review_workflow(), params, name=name)
        took = perf_counter() - began
    close_observers(watching)
    assert result.status is Status.COMPLETED, result.reason
    return took, process_time() - worked


def _log_and_notify(store: SqliteStore, folder: Path) -> list[QueuedObserver]:
    setup = ObserverSetup(open_store=store.reopen, folder=folder)
    quick = {"on": ["waiting", "ended"], "command": [sys.executable, "-IS", "-c", ""]}
    return [
        QueuedObserver("log", LogOutput(setup, file="run.log", level="info")),
        QueuedObserver("notify", Notifier(setup, targets=[quick])),
    ]


def _trace_to_nowhere(store: SqliteStore, folder: Path) -> list[QueuedObserver]:
    setup = ObserverSetup(
        open_store=store.reopen,
        folder=folder,
        record_of=lambda opened, run: stored_record(opened, opened.row(run)),
    )
    return [QueuedObserver("otel", otel_observer(setup, endpoint=NO_COLLECTOR))]
