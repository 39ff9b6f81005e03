"""Lists runs page by page, however many there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from signoff.app.project import Project
from signoff.app.run_records import live_rows, stored_statuses
from signoff.core.outcome import Status
from signoff.errors import UsageError
from signoff.runtime.store_port import RunId, RunRow

_LOOK_AHEAD = 50
"""Rows to read at least, where some may have another status than the stored one."""


@dataclass(frozen=True)
class RunFilter:
    """Which runs to list; empty fields match all."""

    status: Sequence[Status] = ()
    workflow: str = ""
    text: str = ""
    """A part of the run's name, its workflow or its reason, in any case."""


@dataclass(frozen=True)
class RunListPage:
    """Some runs, newest first."""

    rows: list[RunRow]
    next: str | None
    """The cursor of the following page; None on the last."""


def list_page(
    project: Project, chosen: RunFilter, *, cursor: str = "", limit: int = 50
) -> RunListPage:
    """Returns the runs after a cursor, with their current status.

    Runs that are started meanwhile appear before the first page and shift nothing.
    """
    rows = list(islice(_matching(project, chosen, _before(cursor), limit + 1), limit + 1))
    more = len(rows) > limit
    return RunListPage(rows[:limit], str(rows[limit - 1].id) if more else None)


def _before(cursor: str) -> RunId | None:
    if not cursor:
        return None
    if not cursor.isdecimal() or not cursor.isascii() or len(cursor) > 18:
        raise UsageError(f"{cursor!r} is not a cursor; use the one that the page before names")
    return RunId(int(cursor))


def _matching(
    project: Project, chosen: RunFilter, before: RunId | None, size: int
) -> Iterator[RunRow]:
    """Yields the runs that match by their current status.

    A run whose process died is stored as running, so rows are read by their stored status, and
    then chosen by their current one.
    """
    stored = tuple(stored_statuses(chosen.status))
    while True:
        rows = project.store.rows(
            status=stored,
            workflow=chosen.workflow,
            text=chosen.text,
            before=before,
            limit=max(size, _LOOK_AHEAD),
        )
        for row in live_rows(project.store, rows):
            if not chosen.status or row.status in chosen.status:
                yield row
        if len(rows) < max(size, _LOOK_AHEAD):
            return
        before = rows[-1].id
