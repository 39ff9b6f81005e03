"""Lists runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from signoff.app.project import Project
from signoff.core.outcome import Status
from signoff.errors import UnknownName
from signoff.runtime.ports import RunRow


def list_runs(project: Project, *, status: Sequence[str] = (), limit: int = -1) -> list[RunRow]:
    """Returns runs, newest first."""
    return project.store.rows(status=[_status(name) for name in status], limit=limit)


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
