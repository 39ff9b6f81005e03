"""Records of runs, built from events without a store."""

from collections.abc import Iterable

from signoff.core.codec import encode
from signoff.core.errors import StoreDamaged
from signoff.core.events import Event, to_json
from signoff.runtime.store_port import JournalRow
from signoff.views.exports.run_record import RunRecord


def record_of_events(events: Iterable[Event]) -> RunRecord:
    """Returns the record of a run with one commit for each event, and no long texts."""
    rows = [
        JournalRow(number, f"[{encode(to_json(event), {})}]")
        for number, event in enumerate(events, 1)
    ]
    return RunRecord("first", "docs", "", {}, rows, _missing)


def _missing(digest: str) -> str:
    raise StoreDamaged(f"text {digest} is missing")
