"""The JSON document of a notification: what happened to a run, and how to answer it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from signoff.core.codec import decode
from signoff.core.digest import text_digest
from signoff.core.events import RunStopped
from signoff.core.outcome import Status
from signoff.core.requests import options_of
from signoff.observers.setup import ObserverSetup
from signoff.runtime.store_port import InboxItem, RunRow, Store
from signoff.store.rundir.documents import timestamp

LONGEST_TEXT = 4000
"""Characters of a text from outside; receivers limit the size of what they accept."""

MOST_REQUESTS = 50
"""A fan-out may open a thousand; the rest are only counted."""


class NotifyOn(StrEnum):
    """What a notification can be about."""

    WAITING = "waiting"
    PARKED = "parked"
    ENDED = "ended"


_EVENTS = {
    Status.WAITING: NotifyOn.WAITING,
    Status.PARKED: NotifyOn.PARKED,
    # The others are not news: it still runs, or will soon, or its user has just stopped it.
    Status.RUNNING: None,
    Status.QUEUED: None,
    Status.INTERRUPTED: None,
}


def event_of(status: Status) -> NotifyOn | None:
    """Returns what a stop is called in a notification; None if it is not worth one."""
    return _EVENTS.get(status, NotifyOn.ENDED)


def document(
    row: RunRow, seq: int, stop: RunStopped, store: Store, setup: ObserverSetup
) -> dict[str, Any] | None:
    """Returns the document of a stop, which a commit of a run has recorded.

    The run may have continued since: None for a wait that is over, because it was answered.
    """
    event = event_of(stop.status)
    items = store.items(row.name) if event is NotifyOn.WAITING else []
    if event is NotifyOn.WAITING and not items:
        return None
    # The same whichever process sends it; the time tells the run from an earlier one of its name.
    identity = text_digest(f"{row.name}/{row.created_at!r}/{seq}")[:32]
    found: dict[str, Any] = setup.secrets.hide_in(
        {
            "id": identity,
            "event": event,
            "run": row.name,
            "workflow": row.workflow,
            "status": stop.status.value,
            "reason": _cut(stop.reason),
            "at": _time(stop.at),
            "due_at": _time(stop.due_at),
            "requests": [_request(item, store, setup) for item in items[:MOST_REQUESTS]],
            "more_requests": max(0, len(items) - MOST_REQUESTS),
        }
    )
    return found


def _request(item: InboxItem, store: Store, setup: ObserverSetup) -> dict[str, Any]:
    form: Mapping[str, Any] = decode(item.form, store.blob)
    return {
        "number": item.id,
        "step": item.step,
        "kind": item.kind.value,
        "text": _cut(item.prompt),
        "options": [_cut(str(option["label"])) for option in options_of(form)],
        "deadline": _time(item.deadline),
        "commands": list(setup.answer_commands(item, form)),
    }


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def _time(at: float | None) -> str | None:
    return None if at is None else timestamp(at)
