"""Keeps a run's readable files true where no engine does: after an answer, after a loss."""

from __future__ import annotations

from collections.abc import Callable

from signoff.app.project import Project
from signoff.app.runs import as_it_stands
from signoff.core.outcome import Status
from signoff.errors import SignoffError

Warn = Callable[[str], None]
"""Takes what a person should know."""


def catch_up(project: Project, run: str, warn: Warn = lambda _warning: None) -> None:
    """Makes a run's directory show what the run is now; rebuilds what was lost of it.

    The directory only shows what is stored elsewhere, so failing to write it is a warning.
    """
    row = as_it_stands(project, project.store.row(run))
    if row.status is Status.RUNNING:
        # Whoever drives the run writes its directory.
        return
    try:
        project.directory().catch_up(row.name)
    except (SignoffError, OSError) as error:
        warn(f"the directory of run {row.name} is not up to date: {error}")
