"""Ends a run for good."""

from __future__ import annotations

from signoff.app.project import Project
from signoff.core.outcome import FINAL, Status
from signoff.errors import UsageError


async def cancel(project: Project, name: str | None = None, why: str = "") -> tuple[str, Status]:
    """Cancels a run, wherever it is driven; returns its name and where it stands then."""
    row = project.run(name)
    if row.status in FINAL and row.status is not Status.CANCELLED:
        raise UsageError(f"run {row.name!r} has already ended: {row.status.value}")
    async with project.engine() as engine:
        return row.name, await engine.cancel(row.name, why or "cancelled by the user")
