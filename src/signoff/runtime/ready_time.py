"""When a run could have continued: the start of what metrics report as the claim's latency."""

from __future__ import annotations

from collections.abc import Iterable

from signoff.core.outcome import Status
from signoff.runtime.store_port import InboxItem, RunRow


def ready_at(row: RunRow, items: Iterable[InboxItem], now: float) -> float | None:
    """Returns when a run began to wait for a worker; None if it did not wait for one.

    A run that a dead process left behind has no such time: when it died is unknown.
    """
    if row.needs is None:
        return None
    match row.status:
        case Status.QUEUED:
            return row.updated_at
        case Status.PARKED | Status.WAITING:
            times = [item.answered_at for item in items if item.answered_at is not None]
            if row.due_at is not None and row.due_at <= now:
                times.append(row.due_at)
            return min(times, default=None)
        case _:
            return None
