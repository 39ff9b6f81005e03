"""What is left to do for a run, as far as its store knows."""

from __future__ import annotations

from signoff.app.project import Project
from signoff.core.outcome import Status
from signoff.core.requests import ItemState
from signoff.errors import RunBusy
from signoff.runtime.dispatcher import Rest
from signoff.runtime.store_port import RunRow


def has_work(project: Project, row: RunRow) -> bool:
    """Tells whether a run can continue now; a dispatcher may ask for it at any time."""
    is_due = row.due_at is not None and row.due_at <= project.clock.now()
    match row.status:
        case Status.QUEUED | Status.RUNNING:
            return True
        case Status.PARKED:
            return is_due
        case Status.WAITING:
            return is_due or bool(project.store.items(row.name, state=(ItemState.ANSWERED,)))
        case _:
            return False


def rest_of(project: Project, run: str) -> Rest:
    """Returns for how long a run rests; raises `RunBusy` if another process drives it."""
    row = project.store.row(run)
    match row.status:
        case Status.QUEUED:
            return Rest(0.0)
        case Status.RUNNING:
            # The dispatcher asks again, more and more rarely.
            raise RunBusy(f"run {run!r} is driven by another process")
        case Status.WAITING | Status.PARKED:
            now = project.clock.now()
            return Rest(None if row.due_at is None else max(0.0, row.due_at - now))
        case _:
            return Rest(ended=True)
