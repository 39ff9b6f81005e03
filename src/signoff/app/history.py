"""Reads a run's journal back, as events and as the timeline people look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from signoff.app.project import Project
from signoff.core import events as ev
from signoff.core.checkpoint import state_from_json
from signoff.core.codec import decode
from signoff.core.delta import merged
from signoff.core.fold import fold
from signoff.core.run_state import RunState
from signoff.runtime.store_port import RunRow
from signoff.runtime.timeline import Timeline


def events_of(
    project: Project, row: RunRow, *, after: int = 0, whole: bool = True
) -> Iterator[tuple[int, ev.Event]]:
    """Yields a run's events with the number of their commit.

    Long texts are kept apart in the store; whoever needs none of them says `whole=False`
    and gets their digests.
    """
    blob = project.store.blob if whole else _unread
    for seq, text in project.store.journal(row.id, after):
        for data in decode(text, blob):
            yield seq, ev.from_json(data)


def timeline_of(project: Project, row: RunRow, *, whole: bool = False) -> Timeline:
    """Returns what happened in a run so far; its state has long texts only when `whole`."""
    return Timeline().follow(event for _, event in events_of(project, row, whole=whole))


def made_in(state: RunState) -> Mapping[str, Any]:
    """Returns what a run's handlers have made so far, held back or not."""
    return merged(state.state, state.pending.delta) if state.pending else state.state


def folded(project: Project, row: RunRow) -> RunState:
    """Returns a run as its journal has it."""
    blob = project.store.blob
    stored = project.store.load(row.name)
    start = None
    if stored.checkpoint is not None:
        start = state_from_json(decode(stored.checkpoint, blob))
    rows = (decode(text, blob) for _seq, text in stored.tail)
    return fold((ev.from_json(data) for events in rows for data in events), start)


def _unread(digest: str) -> str:
    return f"[{digest[:12]}]"
