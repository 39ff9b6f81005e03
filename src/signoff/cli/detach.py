"""Hands runs to workers from the command line, and prints how to follow them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from signoff.app.agents import refuse_not_ready
from signoff.app.hand_over import AGENT, ensure_worker, hand_over, wake
from signoff.app.next_commands import next_command
from signoff.app.project import Project
from signoff.app.run_records import living_workers, worker_for
from signoff.app.show import show
from signoff.app.start import StartPlan, change
from signoff.cli import exits
from signoff.cli.driving import finish
from signoff.cli.output import Output
from signoff.cli.summary import report_to_json
from signoff.core.outcome import FINAL, Status
from signoff.errors import RunBusy
from signoff.remedies import StartWorker, WatchRun
from signoff.runtime.engine import RunChanges


def start_detached(
    project: Project, plan: StartPlan, options: Mapping[str, Any], out: Output
) -> int:
    """Queues a new run, and starts a worker if there is none; `options` are those of the use case.

    Where each host has its own agents, a worker with the right ones may be elsewhere.
    """
    if project.store.local_file() is not None:
        refuse_not_ready(plan.not_ready(options["switch"]))
    return report_queued(project, hand_over(project, plan, **options).name, out)


def resume_detached(project: Project, run: str | None, changes: RunChanges, out: Output) -> int:
    """Queues a run that rests, with changes, and starts a worker if there is none."""
    row = project.run(run)
    if row.status in FINAL:
        return finish(show(project, row.name), out)
    asyncio.run(change(project, row, changes, out.warn))
    queued = wake(project, row.name)
    if queued.status is Status.QUEUED:
        return report_queued(project, row.name, out)
    raise RunBusy(f"run {row.name!r} is being driven already", remedy=WatchRun(row.name))


def report_queued(project: Project, run: str, out: Output) -> int:
    """Makes sure that there is a worker for a queued run; prints the run and how to follow it."""
    ensure_worker(project)
    if out.as_json:
        out.json(report_to_json(show(project, run)))
        return exits.OK
    # The name alone on stdout, for scripts.
    out.line(run)
    out.note(f"queued for a worker; follow it: signoff logs -f {run}")
    out.note(f"look: signoff show {run}")
    if project.store.local_file() is None:
        _warn_without_worker(project, run, out)
    return exits.OK


def _warn_without_worker(project: Project, run: str, out: Output) -> None:
    if not living_workers(project.store):
        out.warn("no worker is running on this database; start one: signoff worker")
        return
    missing = worker_for(project.store, project.store.row(run)).missing
    # Workers check agents only when a run needs them, so these may be ready in a moment.
    lasting = tuple(each for each in missing if not each.startswith(AGENT))
    if lasting:
        out.warn(f"no worker has {', '.join(lasting)}; {next_command(StartWorker(lasting))}")
