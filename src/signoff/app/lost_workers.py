"""Counts the processes that a run has taken with it.

A run whose code ends its process, by exhausting the memory for example, would be claimed by one
worker after the other: each would die, and each would pay again for the call under way.
"""

from __future__ import annotations

from signoff.core import events as ev
from signoff.runtime.journal import events_in
from signoff.runtime.store_port import RunRow, Store

MOST_LOST = 3
"""How many processes a run may lose without having recorded anything in between."""

_PROGRESS = (ev.EffectFinished, ev.ItemFinished, ev.StepFinished, ev.StepWorked, ev.RunStopped)


def lost_workers(store: Store, row: RunRow) -> int:
    """Returns how often a run was resumed since it last recorded a result or a stop."""
    count = 0
    for commit in reversed(store.journal(row.id)):
        for event in reversed(list(events_in([commit], store.blob))):
            if isinstance(event, _PROGRESS):
                return count
            count += isinstance(event, ev.RunResumed)
    return count
