"""The whole run as one JSON document: for archives, bug reports and other programs."""

from __future__ import annotations

from collections.abc import Iterator

from signoff.core.events import to_json
from signoff.documents.control_characters import json_text
from signoff.exports.run_record import Export, ExportOptions, RunRecord

VERSION = 1
"""Increased when a field is renamed or removed."""


def run_json(record: RunRecord, _options: ExportOptions) -> Iterator[str]:
    """Yields the run's definition, its state and every event, with all texts."""
    timeline = record.timeline()
    state = timeline.state
    header = {
        "version": VERSION,
        "run": record.name,
        "workflow": record.workflow,
        "target": record.target,
        "definition": record.definition,
        "status": state.status.value,
        "reason": state.reason,
        "stop_reason": state.stop_reason.to_json() if state.stop_reason is not None else None,
        "step": state.step,
        "round": state.iteration,
        "started_at": state.started_at,
        "updated_at": state.updated_at,
        "params": state.params,
        "state": state.state_with_pending,
    }
    yield "{\n"
    for name, value in header.items():
        yield f"{json_text(name)}: {json_text(value)},\n"
    yield '"events": ['
    separator = "\n"
    # One event per line, written as it is read: two exports can be compared line by line, and a
    # long run is never a single text in memory.
    for seq, event in record.events():
        yield f"{separator}{json_text({'seq': seq, **to_json(event)})}"
        separator = ",\n"
    yield "\n]\n}\n"


EXPORT = Export("json", "The whole run: definition, state and every event.", run_json)
