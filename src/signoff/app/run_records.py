"""Runs as a store has them: their records, and whether their process is alive."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from functools import cache

from signoff import plugins
from signoff.core.outcome import Status
from signoff.exports.run_record import RunRecord
from signoff.remedies import StartWorker
from signoff.runtime.owner import is_alive
from signoff.runtime.store_port import RunRow, Store, WorkerRow


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
