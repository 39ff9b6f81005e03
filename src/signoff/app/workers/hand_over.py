"""Hands runs to workers: processes that drive runs which others start and answer.

Capabilities decide which worker: `agent:claude` for an agent that is ready, `host:desk` for a
machine, `folder:/srv/book` for a project in that folder, and labels that operators choose.

A run that was handed over belongs to no terminal and no page: whichever worker claims it drives it
on, and any process may still resume it by hand.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib.util import find_spec
from urllib.parse import urlsplit

from signoff import plugins
from signoff.app.runs.next_commands import local_worker_arguments
from signoff.app.runs.run_records import living_workers
from signoff.app.runs.start import StartPlan
from signoff.app.settings.agents import find_not_ready, known_agents
from signoff.app.settings.home import Home
from signoff.app.settings.project import Project
from signoff.app.settings.trust import check_trust
from signoff.core.digest import text_digest
from signoff.core.errors import ConfigError, UnknownName, UsageError, WriteFailed
from signoff.core.outcome import FINAL
from signoff.core.remedies import Install, StartRun
from signoff.documents.home_folder import VARIABLE
from signoff.documents.regular_files import create_private
from signoff.notation import Ask
from signoff.runtime.owner import is_alive
from signoff.runtime.ports import Dispatcher, DispatcherUnavailable
from signoff.runtime.store_port import RunRow

LOG = "worker.log"
"""What a worker that was started in the background prints, in the project's home."""

LOG_BYTES = 1_000_000
"""A longer log is started over."""


def hand_over(
    project: Project,
    plan: StartPlan,
    *,
    name: str | None = None,
    switch: Mapping[str, str] | None = None,
    labels: Collection[str] = (),
) -> RunRow:
    """Creates a run that a worker is going to drive; it is queued until one claims it.

    `labels` are capabilities that the worker must have in addition to what the run needs anyway.
    Not for a thread that runs an event loop: it waits for the database.
    """

    needs = needs_of(project, plan, switch, labels)

    async def start() -> str:
        async with project.engine() as engine:
            target = plan.target
            result = await engine.start(
                target.workflow,
                plan.params,
                name=name,
                limits=plan.own_limits,
                target=target.location,
                switch=switch,
                needs=needs,
            )
            return result.run

    # The run is in the store before the dispatcher hears of it: one that is faster would find
    # nothing.
    row = project.store.row(asyncio.run(start()))
    asyncio.run(announce(project, row, new=True))
    return row


def wake(project: Project, run: str) -> RunRow:
    """Queues a run that rests: answered, parked, interrupted or failed.

    A run that a process drives is left alone: that process sees its answers by itself.
    """
    row = project.store.row(run)
    if row.status in FINAL:
        how = row.status.value.replace("_", " ")
        raise UsageError(
            f"run {run!r} has already ended: {how}",
            remedy=StartRun(again=True, run=run if row.target else ""),
        )
    if not row.target:
        # It says how to name the workflow, which no worker could find.
        project.find_again(row)
    # A run that was never handed over has no needs yet; workers have to find its workflow at least.
    needs = places_of(project) if row.needs is None else row.needs
    queued = project.store.enqueue(row.id, needs, is_alive)
    row = project.store.row(run)
    if queued and project.settings.dispatch:
        # In a thread of its own: the caller's may run an event loop.
        with ThreadPoolExecutor(1) as threads:
            threads.submit(asyncio.run, announce(project, row)).result()
    return row


def wake_if_handed_over(project: Project, run: str) -> bool:
    """Queues a run after an answer if workers drive it; False if its user resumes it."""
    if project.store.row(run).needs is None:
        return False
    continue_run(project, run)
    return True


def continue_run(project: Project, run: str) -> None:
    """Queues a run that rests, and sees to it that a worker takes it."""
    wake(project, run)
    ensure_worker(project)


def ensure_worker(project: Project) -> None:
    """Starts a worker in the background if this machine's project has none.

    It ends by itself when there is nothing left to do. Only for a store that is a file: the
    administrator of a database server decides which hosts work for it.
    """
    # Two processes may both find none and start one each. Of workers that end when idle, the first
    # one stays.
    if project.store.local_file() is None or living_workers(project.store):
        return
    try:
        process = _start_worker(project.home)
    except OSError as error:
        raise WriteFailed(f"cannot start a worker: {error.strerror or error}") from error
    # A server outlives the workers that it starts, and would keep them as zombies.
    threading.Thread(target=process.wait, daemon=True, name="signoff-worker-end").start()


def _start_worker(home: Home) -> subprocess.Popen[bytes]:
    log = home.path / LOG
    with suppress(FileExistsError):
        os.close(create_private(log))
    with log.open("ab") as output:
        if output.tell() > LOG_BYTES:
            output.truncate(0)
        # In a session of its own: the terminal's ctrl-c and its end must not reach it.
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "signoff", *local_worker_arguments()],
            cwd=home.root,
            env={**os.environ, VARIABLE: str(home.path)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


AGENT, FOLDER, HOST = "agent:", "folder:", "host:"

RECHECK_SECONDS = 60.0
"""How long a worker relies on its last check of an agent."""


def needs_of(
    project: Project,
    plan: StartPlan,
    switch: Mapping[str, str] | None = None,
    labels: Iterable[str] = (),
) -> tuple[str, ...]:
    """Returns what a worker must be able to do to drive a planned run."""
    agents = {f"{AGENT}{ask.agent}" for ask in plan.asked_agents(switch)}
    places = set(places_of(project))
    if places and any(step.edits for step in plan.target.workflow.steps.values()):
        # Its steps change files in place, and these are on this machine only.
        places.add(f"{HOST}{socket.gethostname()}")
    return tuple(sorted({*labels, *agents, *places}))


def places_of(project: Project) -> tuple[str, ...]:
    """Returns where a worker must be to find the workflows of a project."""
    # All workers of a store that is a file are on this machine, in this project.
    is_local = project.store.local_file() is not None
    return () if is_local else (f"{FOLDER}{project.home.root}",)


class WorkerCapabilities:
    """What one worker can do. Agents are checked when a run first needs them."""

    def __init__(self, project: Project, labels: Iterable[str] = ()) -> None:
        self._project = project
        places = {f"{HOST}{socket.gethostname()}", f"{FOLDER}{project.home.root}"}
        self._fixed = frozenset({*labels, *places})
        self._ready: set[str] = set()
        self._checked: dict[str, float] = {}

    @property
    def names(self) -> frozenset[str]:
        """All that is known so far."""
        return self._fixed | {f"{AGENT}{name}" for name in self._ready}

    def check(self, needs: Iterable[str]) -> bool:
        """Checks the agents among these needs, at no cost; tells whether the names changed."""
        before, now = self.names, time.monotonic()
        agents = [
            need.removeprefix(AGENT)
            for need in sorted(set(needs))
            if need.startswith(AGENT)
            and now - self._checked.get(need.removeprefix(AGENT), float("-inf")) > RECHECK_SECONDS
        ]
        if not agents:
            return False
        settings = self._project.settings.agents
        root = self._project.code_root or self._project.home.root
        own = [name for name in agents if name in self._project.agents]
        asked = [name for name in agents if name in known_agents(settings) and name not in own]
        not_ready = find_not_ready(settings, map(Ask, asked), root)
        self._ready.difference_update(agents)
        self._ready.update(name for name in (*own, *asked) if name not in not_ready)
        self._checked.update(dict.fromkeys(agents, now))
        return self.names != before


TEMPORAL = "temporal"
"""The scheme, and the extra, of the dispatcher that needs a client."""


def open_dispatcher(project: Project) -> Dispatcher:
    """Returns what brings this project's runs to workers; raises `ConfigError`."""
    # The scope keeps the runs of several stores apart: their names may be equal.
    file = project.store.local_file()
    scope = text_digest(str(file) if file is not None else project.settings.database)[:12]
    return dispatcher_of(project.settings.dispatch, scope)


def dispatcher_of(url: str, scope: str) -> Dispatcher:
    """Returns the dispatcher with a URL; `scope` keeps the runs of several stores apart."""
    scheme = urlsplit(url).scheme or url
    known = plugins.paths("dispatchers")
    if scheme not in known:
        raise ConfigError(f"dispatch: {UnknownName('dispatcher', scheme, sorted(known))}")
    if scheme == TEMPORAL and find_spec("temporalio") is None:
        raise ConfigError("dispatch: the Temporal client is not installed", remedy=Install(scheme))
    dispatcher: Dispatcher = plugins.load(known[scheme])(url, scope)
    return dispatcher


async def announce(project: Project, row: RunRow, *, new: bool = False) -> None:
    """Tells the dispatcher that a run may continue.

    One that cannot be reached is only a warning: the run is queued in the store, where workers
    look for it too.
    """
    if not project.settings.dispatch:
        return
    check_trust(project.home, project.settings)
    dispatcher, needs = open_dispatcher(project), row.needs or ()
    try:
        if new:
            await dispatcher.submit(row.name, needs)
        elif row.due_at is not None:
            await dispatcher.at(row.name, needs, row.due_at)
        else:
            await dispatcher.wake(row.name, needs)
    except DispatcherUnavailable as error:
        logging.getLogger("signoff").warning("%s", error)
