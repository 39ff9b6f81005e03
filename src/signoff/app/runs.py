"""Lists runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from signoff.app.project import Project
from signoff.core.outcome import Status
from signoff.errors import UnknownName
from signoff.runtime.owner import is_alive
from signoff.runtime.store_port import RunRow

_EITHER = frozenset({Status.RUNNING, Status.INTERRUPTED})


def list_runs(project: Project, *, status: Sequence[str] = (), limit: int = -1) -> list[RunRow]:
    """Returns runs as they stand, newest first."""
    wanted = [_status(name) for name in status]
    # A run whose process died is stored as running, so it is found under both names.
    unsure = not _EITHER.isdisjoint(wanted)
    stored = [*wanted, Status.RUNNING] if Status.INTERRUPTED in wanted else wanted
    rows = project.store.rows(status=stored, limit=-1 if unsure else limit)
    found = (as_it_stands(project, row) for row in rows)
    kept = [row for row in found if not wanted or row.status in wanted]
    return kept if limit < 0 else kept[:limit]


def as_it_stands(project: Project, row: RunRow) -> RunRow:
    """Returns a run's row; one whose process died without a word is interrupted."""
    if row.status is not Status.RUNNING:
        return row
    owner = project.store.owner(row.owner) if row.owner is not None else None
    if owner is not None and is_alive(owner) is not False:
        return row
    return row._replace(status=Status.INTERRUPTED, reason="its process stopped")


def run_to_json(row: RunRow) -> dict[str, Any]:
    """Returns a run's row as plain values."""
    return {
        "run": row.name,
        "workflow": row.workflow,
        "status": row.status.value,
        "step": row.step,
        "iteration": row.iteration,
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
