"""Keeps workers busy, kills them and their servers at random, and waits for the runs to end."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from benchmarks.soak import slow_calls
from benchmarks.soak.judgment import Judgment, Kill, judge
from benchmarks.soak.workers import WorkerPool
from signoff.app.runs.start import StartPlan, plan
from signoff.app.settings.project import Project, open_project
from signoff.app.workers.hand_over import hand_over, wake
from signoff.core.outcome import FINAL, Status
from tests.stubs.postgres import running_server
from tests.stubs.temporal import TemporalServer

WORKERS = 4
RUNS = 16
"""How many runs there are to drive at any time: more than the workers have slots for."""

SETTINGS = {
    # What was committed must survive a killed server. The machine itself does not stop.
    "fsync": "off",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "max_connections": "60",
}

PAUSE_SECONDS = (0.1, 1.2)
"""How long to wait before the next kill."""
OUTAGE_SECONDS = (0.0, 2.0)
"""How long a killed server stays away."""
WORKER_TOO = 0.25
"""How likely a worker is killed while a server is away."""
STALLED_SECONDS = 120.0
"""A soak whose runs make no progress for so long has failed."""

SAY_EVERY = 25

_SHARES = {
    "store": {"worker": 4, "postgres": 1},
    "temporal": {"worker": 3, "postgres": 1, "temporal": 1},
}
"""How often each kind of process is killed."""


@dataclass(frozen=True)
class SoakOptions:
    """What a soak does."""

    kills: int
    seconds: float
    seed: int
    dispatch: str = "store"
    runs: int = RUNS
    longest_call_seconds: float = 1.5


@dataclass(frozen=True)
class SoakReport:
    """What a soak did and found."""

    options: SoakOptions
    seconds: float
    kills: Counter[str]
    ended: Counter[str]
    """The last lines of workers that ended by themselves."""
    deadly: int
    """How often a run was stopped because it had lost several workers in a row."""
    judgment: Judgment

    def text(self) -> str:
        """Returns it as a few lines."""
        given, found = self.options, self.judgment
        kinds = ", ".join(f"{number} {kind}" for kind, number in sorted(self.kills.items()))
        what = f"seed {given.seed}, dispatch {given.dispatch}: {self.kills.total()} kills ({kinds})"
        repeats = f"{found.repeats} calls under way were repeated"
        living = f"{found.repeats_of_the_living} of them although their worker lived"
        deadly = f"{self.deadly} runs were stopped after three lost workers and resumed"
        lines = [
            f"{what} in {self.seconds:.0f} s",
            f"{found.runs} runs with {found.calls} calls; {repeats}, {living}; {deadly}",
            *(f"ended by itself, {n} times: {line}" for line, n in self.ended.most_common()),
            *(f"BROKEN {each}" for each in found.broken),
            "promises kept" if not found.broken else f"{len(found.broken)} promises broken",
        ]
        return "\n".join(lines)


@dataclass
class _Tally:
    kills: list[Kill] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    deadly: int = 0


class Soak:
    """One soak; its servers and workers run while it is open."""

    def __init__(self, folder: Path, options: SoakOptions, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._options = options
        self._say = say
        self._random = random.Random(options.seed)
        self._tally = _Tally()
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Starts the servers and the workers."""
        with ExitStack() as stack:
            self._database = stack.enter_context(running_server(SETTINGS))
            self._temporal = TemporalServer(self._folder / "temporal.db")
            if self._options.dispatch == "temporal":
                stack.callback(self._temporal.kill)
                self._temporal.start()
            self._project = stack.enter_context(self._new_project())
            self._plan = self._new_plan()
            pool = WorkerPool(self._root, WORKERS, self._environment)
            self._workers = stack.enter_context(closing(pool))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_error: object) -> None:
        """Ends all that was started."""
        self._stack.close()

    def run(self) -> SoakReport:
        """Kills as often as asked, lets all runs end, and judges what happened."""
        started = time.monotonic()
        while (
            len(self._tally.kills) < self._options.kills
            and time.monotonic() - started < self._options.seconds
        ):
            self._refill()
            time.sleep(self._random.uniform(*PAUSE_SECONDS))
            self._kill(self._next_kind())
            if len(self._tally.kills) % SAY_EVERY == 0:
                self._say(f"{len(self._tally.kills)} kills, {len(self._tally.names)} runs")
        self._wait_for_ends()
        return SoakReport(
            self._options,
            time.monotonic() - started,
            Counter(kill.kind for kill in self._tally.kills),
            Counter(self._workers.ended_by_themselves),
            self._tally.deadly,
            self.judged(),
        )

    @property
    def log(self) -> Path:
        """The calls that were really made."""
        return self._root / slow_calls.LOG.name

    def judged(self) -> Judgment:
        """Compares the calls that were made with the journals."""
        return judge(self._project.store, self.log, self._tally.names, self._tally.kills)

    # The project

    @property
    def _root(self) -> Path:
        return self._folder / "project"

    @property
    def _environment(self) -> dict[str, str]:
        longest = str(self._options.longest_call_seconds)
        return {"XDG_CONFIG_HOME": str(self._folder / "none"), slow_calls.VARIABLE: longest}

    def _new_project(self) -> Project:
        self._root.mkdir()
        shutil.copy(slow_calls.__file__, self._root / "slow_calls.py")
        with open_project(self._root, self._environment, create=True) as opened:
            self.database = self._database.new_database()
            settings = [f"database: {self.database}"]
            if self._options.dispatch == "temporal":
                address = self._temporal.address
                settings.append(f"dispatch: temporal://{address}/default?heartbeat=2")
            opened.home.config.write_text("\n".join(settings) + "\n")
        return open_project(self._root, self._environment)

    def _new_plan(self) -> StartPlan:
        return plan(self._root, self._environment, "slow_calls.py:SOAK", {})

    def _refill(self) -> None:
        """Replaces lost workers, and hands new runs over for those that have ended."""
        self._workers.fill()
        for _ in range(self._options.runs - self._active()):
            name = f"run-{len(self._tally.names) + 1}"
            # Known before it is handed over: it must exist even if that is interrupted.
            self._tally.names.append(name)
            hand_over(self._project, self._plan, name=name)

    def _active(self) -> int:
        """Returns how many runs have not ended; resumes those that lost too many workers."""
        active = 0
        for row in self._project.store.rows():
            if row.status is Status.FAILED and "processes ended" in row.reason:
                self._tally.deadly += 1
                wake(self._project, row.name)
            active += row.status not in FINAL and row.status is not Status.FAILED
        return active

    # Kills

    def _next_kind(self) -> str:
        shares = _SHARES[self._options.dispatch]
        return self._random.choices(list(shares), list(shares.values()))[0]

    def _kill(self, kind: str) -> None:
        pid = self._random.choice(self._workers.pids) if kind == "worker" else 0
        at = time.time()
        if kind == "worker":
            self._workers.kill(pid)
        elif kind == "postgres":
            self._database.stop(self._random.choice((signal.SIGKILL, signal.SIGQUIT)))
            self._outage()
            self._database.start()
        else:
            self._temporal.kill()
            self._outage()
            self._temporal.start()
        self._tally.kills.append(Kill(at, time.time(), kind, pid))

    def _outage(self) -> None:
        """Waits while a server is away; sometimes a worker dies as well."""
        time.sleep(self._random.uniform(*OUTAGE_SECONDS))
        if self._random.random() < WORKER_TOO:
            self._kill("worker")

    def _wait_for_ends(self) -> None:
        last, until = -1, time.monotonic() + STALLED_SECONDS
        while self._active() and time.monotonic() < until:
            heads = sum(row.head for row in self._project.store.rows())
            if heads != last:
                last, until = heads, time.monotonic() + STALLED_SECONDS
            self._workers.fill()
            time.sleep(0.5)
