"""Hands runs to workers: processes that drive runs which others start and answer.

A run that was handed over belongs to no terminal and no page: whichever worker claims it drives it
on, and any process may still resume it by hand.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from signoff.app.capabilities import needs_of, places_of
from signoff.app.dispatching import announce
from signoff.app.home import Home
from signoff.app.next_commands import local_worker_arguments
from signoff.app.project import Project
from signoff.app.run_records import living_workers
from signoff.app.start import StartPlan
from signoff.core.outcome import FINAL
from signoff.documents.regular_files import create_private
from signoff.errors import UsageError, WriteFailed
from signoff.remedies import StartRun
from signoff.runtime.home_folder import VARIABLE
from signoff.runtime.owner import is_alive
from signoff.runtime.store_port import RunRow, WorkerRow

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


def worker_to_json(worker: WorkerRow) -> dict[str, Any]:
    """Returns a worker as plain values."""
    return {
        "number": worker.number,
        "host": worker.owner.host_name,
        "pid": worker.owner.pid,
        "slots": worker.slots,
        "running": worker.running,
        "capabilities": list(worker.capabilities),
        "started_at": worker.started_at,
    }
