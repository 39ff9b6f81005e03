"""Computes metrics over all runs from the database, when they are read.

No process counts anything: the journals are what is reported, whichever processes drove the runs,
and however they ended.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import suppress

from signoff.app.history import record_of
from signoff.app.project import Project
from signoff.app.runs import current_row
from signoff.errors import SignoffError, StoreError
from signoff.runtime.store_port import RunId, RunRow
from signoff.telemetry.metrics import Metrics
from signoff.telemetry.prometheus import prometheus_text
from signoff.telemetry.run_summary import VERSION, RunSummary, summarize

BATCH = 200
"""Summaries that are stored at once: a first look at thousands of runs may be interrupted."""

log = logging.getLogger("signoff")


def metrics_text(project: Project) -> str:
    """Returns the metrics of all runs in the text format of Prometheus."""
    return prometheus_text(collect(project).by_name.values())


def collect(project: Project) -> Metrics:
    """Adds up all runs and pending requests."""
    metrics = Metrics()
    stored = project.store.summaries(VERSION)
    rows = project.store.rows()
    current = {row.id: current_row(project, row) for row in rows}
    for row in rows:
        metrics.add(1, "signoff_runs", current[row.id].status.value)
    for row, summary in _summaries(project, rows, stored):
        if summary is None:
            metrics.add(1, "signoff_runs_unreadable")
        else:
            metrics.add_run(current[row.id].status, summary)
    waiting = ((item.kind.value, item.opened_at) for item in project.store.waiting())
    metrics.add_inbox(waiting, project.clock.now())
    return metrics


def _summaries(
    project: Project, rows: list[RunRow], stored: Mapping[RunId, str]
) -> Iterator[tuple[RunRow, RunSummary | None]]:
    """Yields the summary of each run; None for one whose journal cannot be read."""
    new: list[tuple[RunId, int, str]] = []
    for row in rows:
        if row.id in stored:
            yield row, RunSummary.from_text(stored[row.id])
            continue
        try:
            summary, head = _summarize(project, row)
        except SignoffError as error:
            log.warning("the metrics leave out run %s: %s", row.name, error)
            yield row, None
            continue
        yield row, summary
        new.append((row.id, head, summary.to_text()))
        if len(new) >= BATCH:
            _store(project, new)
            new = []
    _store(project, new)


def _store(project: Project, new: list[tuple[RunId, int, str]]) -> None:
    # Without this, the next look computes them again: a busy or read-only database is no error.
    with suppress(StoreError):
        if new:
            project.store.keep_summaries(VERSION, new)


def _summarize(project: Project, row: RunRow) -> tuple[RunSummary, int]:
    """Returns a run's summary, and the commit up to which it was computed."""
    record = record_of(project, row)
    events = (event for _, event in record.events(whole=False))
    return summarize(events, record.report), record.journal[-1].seq if record.journal else 0
