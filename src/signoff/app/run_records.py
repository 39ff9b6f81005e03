"""Runs as a store has them: their records, and whether their process is alive."""

from __future__ import annotations

import json

from signoff import plugins
from signoff.core.outcome import Status
from signoff.exports.run_record import RunRecord
from signoff.runtime.owner import is_alive
from signoff.runtime.store_port import RunRow, Store


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
    """Returns a run's row; if its process died without recording that, as interrupted."""
    if row.status is not Status.RUNNING:
        return row
    owner = store.owner(row.owner) if row.owner is not None else None
    if owner is not None and is_alive(owner) is not False:
        return row
    return row._replace(status=Status.INTERRUPTED, reason="its process stopped")
