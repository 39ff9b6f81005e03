"""What a run's journal has before a commit, for observers that join a run in the middle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from signoff.core import events as ev
from signoff.runtime.journal import events_in
from signoff.runtime.store_port import Store

History = Callable[[str, int], Iterable[ev.Event]]
"""Returns the events of a run before the commit of a number."""


def events_before(store: Store, run: str, seq: int) -> Iterator[ev.Event]:
    """Yields a run's events before a commit, without their long texts."""
    rows = store.journal(store.row(run).id)
    return events_in((row for row in rows if row.seq < seq), lambda _digest: "")
