"""Updates a run's directory when no engine does, such as after an answer."""

from __future__ import annotations

from collections.abc import Callable

from signoff.app.project import Project
from signoff.app.runs import current_row
from signoff.core.outcome import Status
from signoff.errors import SignoffError

Warn = Callable[[str], None]
"""Receives warnings for the user."""


def catch_up(
    project: Project, run: str, warn: Warn = lambda _warning: None, *, repair: bool = True
) -> None:
    """Updates a run's directory to the current state and restores missing files.

    Without `repair`, a directory that shows the whole journal is left as it is: to compare all of
    its files takes a second if the run is long. The directory only mirrors the database, so a
    failure to write it is just a warning.
    """
    row = current_row(project, project.store.row(run))
    if row.status is Status.RUNNING:
        # The process that drives the run writes its directory.
        return
    try:
        directory = project.directory()
        if repair or not directory.is_current(row):
            directory.catch_up(row.name)
    except (SignoffError, OSError) as error:
        warn(f"the directory of run {row.name} is not up to date: {error}")
