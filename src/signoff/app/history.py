"""Reads a run's journal: as a record, as events, as a timeline, as the history of a review."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from signoff import plugins
from signoff.app.project import Project
from signoff.app.run_records import stored_record
from signoff.core import events as ev
from signoff.core.codec import decode
from signoff.core.outcome import FINAL
from signoff.core.run_state import RunState
from signoff.errors import UsageError
from signoff.exports.run_record import RunRecord, short_digest
from signoff.notation import RunSnapshot
from signoff.remedies import ShowRun
from signoff.runtime.journal import folded_state
from signoff.runtime.store_port import RunRow
from signoff.runtime.timeline import Timeline

if TYPE_CHECKING:
    from signoff.notation import HistoryFold, ResumeReport
    from signoff.review.history import ReviewHistory


def record_of(project: Project, row: RunRow) -> RunRecord:
    """Returns everything that is stored about a run, for an export."""
    return stored_record(project.store, row)


def events_of(
    project: Project, row: RunRow, *, after: int = 0, whole: bool = True
) -> Iterator[tuple[int, ev.Event]]:
    """Yields a run's events with the number of their commit.

    Long texts are stored separately; `whole=False` returns short digests in their place,
    which is faster.
    """
    blob = project.store.blob if whole else short_digest
    for seq, text in project.store.journal(row.id, after):
        for data in decode(text, blob):
            yield seq, ev.from_json(data)


def timeline_of(project: Project, row: RunRow, *, whole: bool = False) -> Timeline:
    """Returns the timeline of a run so far; its state has long texts only if `whole`."""
    return Timeline().follow(event for _, event in events_of(project, row, whole=whole))


def history_fold(project: Project, row: RunRow) -> HistoryFold | None:
    """Returns what follows the review of a run; None if its notation has no reviews."""
    notation = project.notation_of(row)
    if notation is None or not notation.history:
        return None
    fold: HistoryFold = plugins.load(notation.history)(
        json.loads(project.store.description(row.id))
    )
    return fold


def resume_report(
    project: Project, row: RunRow, state: RunState | None = None
) -> ResumeReport | None:
    """Returns where a run continues; None if it has ended, or if its notation says nothing."""
    if row.status in FINAL:
        return None
    description = json.loads(project.store.description(row.id))
    notation = plugins.notation(description.get("notation", ""))
    if notation is None or not notation.resume:
        return None
    run = RunSnapshot(row.name, state or load_state(project, row), description)
    report: ResumeReport = plugins.load(notation.resume)(run)
    return report


def need_review(project: Project, name: str | None) -> tuple[RunRow, ReviewHistory]:
    """Returns a run, by default the latest, and the history of its review."""
    row = project.run(name)
    history = record_of(project, row).review()
    if history is None:
        raise without_review(row)
    return row, history


def without_review(row: RunRow) -> UsageError:
    """Returns the error of a run that has no review to show."""
    return UsageError(
        f"run {row.name!r} has no review: its workflow {row.workflow!r} is not a review flow",
        remedy=ShowRun(row.name),
    )


def load_state(project: Project, row: RunRow) -> RunState:
    """Returns the state of a run, folded from its journal."""
    return folded_state(project.store.load(row.name), project.store.blob)
