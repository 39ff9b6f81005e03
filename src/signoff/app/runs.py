"""Lists and cancels runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from signoff.app.project import Project
from signoff.app.run_records import live_row, live_rows, stored_statuses
from signoff.core.outcome import FINAL, Status
from signoff.core.requests import ItemState
from signoff.errors import RunEnded, UnknownName
from signoff.runtime.store_port import RunRow


def list_runs(project: Project, *, status: Sequence[str] = (), limit: int = -1) -> list[RunRow]:
    """Returns runs with their current status, newest first."""
    statuses = [_status(name) for name in status]
    stored = stored_statuses(statuses)
    # A run whose process died is stored as running, so fewer runs may match than are read.
    rows = project.store.rows(status=tuple(stored), limit=-1 if Status.RUNNING in stored else limit)
    current = live_rows(project.store, rows)
    matching = [row for row in current if not statuses or row.status in statuses]
    return matching if limit < 0 else matching[:limit]


def answered_runs(project: Project) -> set[str]:
    """Returns the waiting runs that have every answer they wait for, and were not resumed yet."""
    answered = {item.run for item in project.store.items(state=(ItemState.ANSWERED,))}
    return answered - {line.run for line in project.store.waiting()} if answered else answered


def current_row(project: Project, row: RunRow) -> RunRow:
    """Returns a run's row as it is now, also if its process died without recording that."""
    return live_row(project.store, row)


async def cancel(project: Project, name: str | None = None, why: str = "") -> tuple[str, Status]:
    """Cancels a run, whichever process drives it; returns its name and final status."""
    row = project.run(name)
    if row.status in FINAL and row.status is not Status.CANCELLED:
        how = row.status.value.replace("_", " ")
        raise RunEnded(f"run {row.name!r} has already ended: {how}")
    async with project.engine() as engine:
        return row.name, await engine.cancel(row.name, why or "by the user")


def run_to_json(row: RunRow) -> dict[str, Any]:
    """Returns a run's row as plain values."""
    return {
        "run": row.name,
        "workflow": row.workflow,
        "status": row.status.value,
        "step": row.step,
        "round": row.iteration,
        "reason": row.reason,
        "target": row.target,
        "due_at": row.due_at,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
    }


def _status(name: str) -> Status:
    try:
        return Status(name)
    except ValueError:
        raise UnknownName("status", name, [status.value for status in Status]) from None
