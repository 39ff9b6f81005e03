"""The JSON document of a notification: what happened to a run, and how to answer it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NamedTuple

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


class RunStop(NamedTuple):
    """A stop of a run, as its journal has it."""

    run: str
    workflow: str
    created_at: float
    """Distinguishes the run from an earlier one of the same name."""
    seq: int
    """The number of the commit that recorded the stop."""
    status: Status
    reason: str
    due_at: float | None
    at: float

    @classmethod
    def of(cls, row: RunRow) -> RunStop:
        """Returns the last stop of a run that no process drives."""
        return cls(
            row.name,
            row.workflow,
            row.created_at,
            row.head,
            row.status,
            row.reason,
            row.due_at,
            row.updated_at,
        )

    @classmethod
    def at_commit(cls, row: RunRow, seq: int, event: RunStopped) -> RunStop:
        """Returns the stop that a commit has recorded; the run may have continued since."""
        return cls.of(row)._replace(
            seq=seq, status=event.status, reason=event.reason, due_at=event.due_at, at=event.at
        )

    @property
    def event(self) -> NotifyOn | None:
        """What it is called in a notification; None if it is not worth one."""
        return _EVENTS.get(self.status, NotifyOn.ENDED)

    @property
    def id(self) -> str:
        """Identifies the notification; the same whenever and by whichever process it is sent."""
        return text_digest(f"{self.run}/{self.created_at!r}/{self.seq}")[:32]


def document(stop: RunStop, store: Store, setup: ObserverSetup) -> dict[str, Any] | None:
    """Returns the document of a stop; None for a wait that is over, because it was answered."""
    items = store.items(stop.run) if stop.event is NotifyOn.WAITING else []
    if stop.event is NotifyOn.WAITING and not items:
        return None
    found: dict[str, Any] = setup.secrets.hide_in(
        {
            "id": stop.id,
            "event": stop.event,
            "run": stop.run,
            "workflow": stop.workflow,
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
