"""`signoff worker` and `signoff workers`."""

from __future__ import annotations

import time

import click

from signoff.app.json_documents import worker_document
from signoff.app.runs.run_records import living_workers
from signoff.app.runs.runs import public_address
from signoff.app.workers.hand_over import open_dispatcher
from signoff.app.workers.queue_worker import QueueWorker
from signoff.core import events as ev
from signoff.core.amounts import count
from signoff.core.outcome import Status
from signoff.runtime.ports import Notice, Recorded
from signoff.surfaces.cli import exits
from signoff.surfaces.cli import options as cli
from signoff.surfaces.cli.output import Output, ago, clean, one_line
from signoff.surfaces.cli.views import Interrupted, View, run_interruptibly

DEFAULT_SLOTS = 4


class WorkerView(View):
    """Prints a line when a run continues and when it stops; keeps nothing of it."""

    def __init__(self, out: Output) -> None:
        super().__init__()
        self._out = out

    def notice(self, notice: Notice) -> None:
        """Prints what a run does, if it is worth a line."""
        if not isinstance(notice, Recorded):
            return
        for event in notice.events:
            match event:
                case ev.RunResumed():
                    self._show(notice.run, Status.RUNNING, event.at)
                case ev.RunStopped(status=status, reason=reason):
                    self._show(notice.run, status, event.at, reason)

    def stopping(self) -> None:
        """Shows that the worker is about to end."""
        self._out.note("stopping: its runs go back to the queue (ctrl-c again quits at once)")

    def _show(self, run: str, status: Status, at: float, reason: str = "") -> None:
        if self._out.as_json:
            self._out.json_line({"at": at, "run": run, "status": status.value, "reason": reason})
            return
        moment = time.strftime("%H:%M:%S", time.localtime(at))
        why = f": {one_line(reason, 300)}" if reason else ""
        print(clean(f"{moment} {run}: {status.value.replace('_', ' ')}{why}"), flush=True)


@cli.command()
@click.option("--slots", type=click.IntRange(1, 1000), default=DEFAULT_SLOTS, show_default=True,
              help="How many runs to drive at the same time.")  # fmt: skip
@click.option("--capability", "labels", multiple=True, metavar="NAME",
              help="A label that runs can need, such as gpu. Repeatable.")  # fmt: skip
@click.option("--idle-exit", type=click.FloatRange(min=0), metavar="SECONDS",
              help="End after this time without work, and at once if there is another worker.",
)  # fmt: skip
def command(slots: int, labels: tuple[str, ...], idle_exit: float | None, out: Output) -> int:
    """Drive runs that were handed over, until it is stopped.

    A worker takes the runs of `run --detach` and `resume --detach`, continues them when they are
    answered or due, and takes over the runs of a worker that died. Several workers share the
    work; each run is driven by one of them. SIGTERM or ctrl-c ends a worker: its runs go back to
    the queue, and nothing that is finished is repeated.

    Examples:
      signoff worker
      signoff worker --slots 16
    """
    with cli.open_here(drives=True) as project:
        view = WorkerView(out)
        dispatcher = open_dispatcher(project) if project.settings.dispatch else None
        worker = QueueWorker(
            project,
            slots=slots,
            labels=labels,
            idle_seconds=idle_exit,
            dispatcher=dispatcher,
            warn=out.warn,
        )
        database = project.store.local_file() or public_address(project.settings.database)
        capabilities = f", capabilities {', '.join(labels)}" if labels else ""
        out.note(f"worker with {count(slots, 'slot')} on {database}{capabilities}; ctrl-c ends it")
        try:
            run_interruptibly(worker.work([view]), view)
        except Interrupted:
            out.note("stopped")
    return exits.OK


@cli.command()
def workers_command(out: Output) -> None:
    """List the workers that drive runs, with their load.

    Examples:
      signoff workers
      signoff workers --json
    """
    with cli.open_here() as project:
        workers = living_workers(project.store)
    now = time.time()
    rows = [
        (
            each.number,
            each.owner.host_name,
            each.owner.pid,
            f"{each.running}/{each.slots}",
            ago(each.started_at, now),
            ", ".join(each.capabilities),
        )
        for each in workers
    ]
    headings = ("WORKER", "HOST", "PID", "RUNS", "STARTED", "CAPABILITIES")
    none = "no workers; start one: signoff worker"
    out.listing([*map(worker_document, workers)], headings, rows, none)
