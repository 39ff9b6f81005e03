"""Runs as a store has them: their records, whether their process is alive, and their metrics."""

from __future__ import annotations

import json
import logging
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache

from signoff import plugins
from signoff.core.errors import StoreError
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
    new: list[tuple[RunId, int, str]] = []
    for row in rows:
        if row.id in stored:
            metrics.add_run(current[row.id].status, RunSummary.from_text(stored[row.id]))
        elif (found := _summary(store, row)) is None:
            metrics.add(1, "signoff_runs_unreadable")
        else:
            # Up to the commit that was read: a later one makes it out of date.
            new.append((row.id, found[0], found[1].to_text()))
            metrics.add_run(current[row.id].status, found[1])
    # Without them the next look computes these again: a busy or read-only database is no error.
    with suppress(StoreError):
        if new:
            store.keep_summaries(VERSION, new)
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


def _summary(store: Store, row: RunRow) -> tuple[int, RunSummary] | None:
    """Returns the last commit of a run and its summary up to there; None if it cannot be read."""
    try:
        record = stored_record(store, row)
        summary = summarize((event for _, event in record.events(whole=False)), record.reported)
    except Exception as error:  # noqa: BLE001  # damage or a plug-in's bug hides no other run
        log.warning("the metrics leave out run %s: %r", row.name, error)
        return None
    return record.journal[-1].seq if record.journal else 0, summary
