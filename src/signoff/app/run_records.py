"""The stored records of runs, for exports and observers."""

from __future__ import annotations

import json

from signoff import plugins
from signoff.exports.run_record import RunRecord
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
