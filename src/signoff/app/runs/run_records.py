"""Runs as a store has them: their records, whether their process is alive, and their metrics."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, partial
from typing import Any

from signoff import plugins
from signoff.core.errors import SignoffError, StoreError
from signoff.core.outcome import Status
from signoff.core.remedies import StartWorker
from signoff.runtime.owner import is_alive
from signoff.runtime.store_port import RunId, RunRow, Store, WorkerRow
from signoff.views.exports.run_record import RunRecord
from signoff.views.metrics import VERSION, Metrics, RunSummary, prometheus_text, summarize


def stored_record(store: Store, row: RunRow) -> RunRecord:
    """Returns everything that a store has about a run."""
    definition = json.loads(store.description(row.id))
    notation = plugins.notation(definition.get("notation", ""))
    return RunRecord(
        name=row.name,
        workflow=row.workflow,
        target=row.target,
        definition=definition,
        journal=store.journal(row.id),
        blob=store.blob,
        report=plugins.load(notation.report) if notation and notation.report else None,
        history=plugins.load(notation.history) if notation and notation.history else None,
    )


def live_row(store: Store, row: RunRow) -> RunRow:
    """Returns a run's row as it is now, see `live_rows`."""
    return next(live_rows(store, [row]))


def live_rows(store: Store, rows: Iterable[RunRow]) -> Iterator[RunRow]:
    """Yields the rows of runs as they are now.

    If its process died without recording that, it is interrupted, or queued again if workers
    continue it. If it is queued and no worker can take it, that is the reason.
    """
    # Asked once: a queue may be long.
    # Most lists have no queued run, and then no worker is looked up at all.
    workers = cache(lambda: living_workers(store))
    is_owned = cache(lambda owner: store.owner(owner, is_alive) is not None)
    for row in rows:
        is_dead = row.status is Status.RUNNING and not (row.owner and is_owned(row.owner))
        if row.status is Status.QUEUED or (is_dead and row.needs is not None):
            yield row._replace(status=Status.QUEUED, reason=_why_queued(row, workers()))
        elif is_dead:
            yield row._replace(status=Status.INTERRUPTED, reason="its process stopped")
        else:
            yield row


def stored_statuses(current: Collection[Status]) -> set[Status]:
    """Returns the statuses under which runs with these current ones may be stored."""
    may_be_dead = not {Status.INTERRUPTED, Status.QUEUED}.isdisjoint(current)
    return {*current, Status.RUNNING} if may_be_dead else set(current)


def living_workers(store: Store) -> list[WorkerRow]:
    """Returns the workers of a store that run; the oldest first.

    Those without slots only finish what they have, and are left out.
    """
    return [each for each in store.workers(is_alive) if each.slots]


def missing_capabilities(
    needs: Iterable[str], workers: Iterable[WorkerRow]
) -> tuple[str, ...] | None:
    """Returns what the most able worker lacks: nothing if it can; None if there is no worker."""
    # One worker has to have all of them; two that have half each help nobody.
    lacking = [tuple(sorted(set(needs) - set(each.capabilities))) for each in workers]
    return min(lacking, key=len, default=None)


def worker_for(store: Store, row: RunRow) -> StartWorker:
    """Returns what to start for a run that no worker can take."""
    return StartWorker(missing_capabilities(row.needs or (), living_workers(store)) or ())


def _why_queued(row: RunRow, workers: Iterable[WorkerRow]) -> str:
    missing = missing_capabilities(row.needs or (), workers)
    if missing is None:
        return "no worker is running"
    return f"no worker has {', '.join(missing)}" if missing else ""


# No process counts anything: the journals are what is reported, whichever processes drove the runs,
# and however they ended.

BATCH = 200
"""Summaries that are stored at once: a first look at thousands of runs may be interrupted."""

log = logging.getLogger("signoff")


def metrics_text(store: Store, now: float) -> str:
    """Returns the metrics of all runs in the text format of Prometheus."""
    return prometheus_text(collect(store, now))


def collect(store: Store, now: float) -> Metrics:
    """Adds up all runs and pending requests."""
    metrics = Metrics()
    stored = store.summaries(VERSION)
    rows = store.rows()
    current = {row.id: row for row in live_rows(store, rows)}
    for row in rows:
        metrics.add(1, "signoff_runs", current[row.id].status.value)
    for row, summary in _summaries(store, rows, stored):
        if summary is None:
            metrics.add(1, "signoff_runs_unreadable")
        else:
            metrics.add_run(current[row.id].status, summary)
    waiting = ((item.kind.value, item.opened_at) for item in store.waiting())
    metrics.add_inbox(waiting, now)
    _add_queue(metrics, store, list(current.values()), now)
    return metrics


def _add_queue(metrics: Metrics, store: Store, rows: list[RunRow], now: float) -> None:
    queued = [row for row in rows if row.status is Status.QUEUED]
    oldest = min((row.updated_at for row in queued), default=now)
    metrics.add(max(0.0, now - oldest), "signoff_queue_oldest_seconds")
    # Only a run that no worker can take has a reason.
    metrics.add(sum(bool(row.reason) for row in queued), "signoff_queue_stuck")
    workers = living_workers(store)
    metrics.add(len(workers), "signoff_workers")
    metrics.add(sum(each.slots for each in workers), "signoff_worker_slots")


def _summaries(
    store: Store, rows: list[RunRow], stored: Mapping[RunId, str]
) -> Iterator[tuple[RunRow, RunSummary | None]]:
    """Yields the summary of each run; None for one whose journal cannot be read."""
    new: list[tuple[RunId, int, str]] = []
    for row in rows:
        if row.id in stored:
            yield row, RunSummary.from_text(stored[row.id])
            continue
        try:
            record = stored_record(store, row)
            report = partial(_facts, record) if record.report is not None else None
            summary = summarize((event for _, event in record.events(whole=False)), report)
        except SignoffError as error:
            log.warning("the metrics leave out run %s: %s", row.name, error)
            yield row, None
            continue
        yield row, summary
        # Up to the commit that was read: later ones make it out of date.
        head = record.journal[-1].seq if record.journal else 0
        new.append((row.id, head, summary.to_text()))
        if len(new) >= BATCH:
            _store(store, new)
            new = []
    _store(store, new)


def _store(store: Store, new: list[tuple[RunId, int, str]]) -> None:
    # Without this, the next look computes them again: a busy or read-only database is no error.
    with suppress(StoreError):
        if new:
            store.keep_summaries(VERSION, new)


def _facts(record: RunRecord, state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns what a run's notation reports; nothing if the notation cannot read the state."""
    assert record.report is not None  # noqa: S101  # the caller checked it
    try:
        return record.report(state, record.definition).facts
    except Exception as error:  # noqa: BLE001  # a plug-in's bug must not hide the other runs
        log.warning("the metrics leave out the findings of run %s: %r", record.name, error)
        return {}
