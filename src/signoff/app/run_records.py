"""Runs as a store has them: their records, and whether their process is alive."""

from __future__ import annotations

import json
from collections.abc import Iterable

from signoff import plugins
from signoff.core.outcome import Status
from signoff.exports.run_record import RunRecord
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
    """Returns a run's row as it is now.

    If its process died without recording that, it is interrupted; if it is queued and no worker
    can take it, that is the reason.
    """
    if row.status is Status.QUEUED:
        return row._replace(reason=_why_queued(store, row))
    if row.status is not Status.RUNNING:
        return row
    if row.owner is not None and store.owner(row.owner, is_alive) is not None:
        return row
    return row._replace(status=Status.INTERRUPTED, reason="its process stopped")


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


def _why_queued(store: Store, row: RunRow) -> str:
    missing = missing_capabilities(row.needs or (), living_workers(store))
    if missing is None:
        return "no worker is running"
    return f"no worker has {', '.join(missing)}" if missing else ""
