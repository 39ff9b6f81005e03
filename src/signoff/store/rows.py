"""What all stores share: rows of their tables as values, and when they refuse a caller."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar

from signoff.core.outcome import Status
from signoff.core.requests import ItemState, RequestKind
from signoff.errors import RequestClosed, RunBusy, RunMoved, StaleApproval, StoreTooNew, UnknownName
from signoff.remedies import CancelRun, ShowInbox
from signoff.runtime.store_port import (
    LEASE_SECONDS,
    SILENT_SECONDS,
    Alive,
    DispatchToken,
    InboxItem,
    InboxLine,
    Owner,
    RunRow,
    WorkerRow,
)

E = TypeVar("E", bound=StrEnum)

_INTEGER_LIMIT = 1 << 63
"""The integers of databases are smaller than this."""


RENEWED_SECONDS = LEASE_SECONDS - SILENT_SECONDS
"""How much is left of the lease of an owner that is not silent."""


def is_held(owner: Owner, alive: Alive, *, leased: bool) -> bool:
    """Tells whether an owner has to be believed alive; `leased` is whether its lease holds.

    A process that exists and has not renewed its lease is stopped, swapped out or cut off. It may
    stay so for hours, and the fence keeps it from writing when it continues.
    """
    return leased and alive(owner) is not False


def busy(row: RunRow, owner: Owner) -> RunBusy:
    """Returns the error for a run that a living owner drives."""
    return RunBusy(
        f"run {row.name!r} is being driven by process {owner.pid} on {owner.host.split('/')[0]}",
        remedy=CancelRun(row.name),
    )


def is_later_attempt(row: RunRow, token: DispatchToken | None, last: DispatchToken) -> bool:
    """Tells whether an attempt of a dispatcher follows the run's last; an outdated one raises.

    `last` is the token that the run was last taken for.
    """
    if token is None or row.owner is None or token.dispatch != last.dispatch:
        return False
    if token.attempt <= last.attempt:
        raise RunBusy(f"a later attempt drives run {row.name!r} already")
    return True


def unknown_run(name: str, moved: str | None, names: list[str]) -> UnknownName:
    """Returns the error for a run that a store does not have, or no longer."""
    return UnknownName("run", name, names) if moved is None else RunMoved(name, moved)


def refuse_answer(item: InboxItem, digest: str) -> None:
    """Raises `RequestClosed` or `StaleApproval` unless a request can be answered as shown."""
    if item.state != ItemState.OPEN:
        raise RequestClosed(f"request #{item.id} is no longer open ({item.state})")
    if item.digest != digest:
        raise StaleApproval(
            f"request #{item.id} has changed since it was shown", remedy=ShowInbox(item.id)
        )


def request_id(number: int) -> int:
    """Returns a request's number as databases take it; one that is too large becomes 0, as none."""
    return number if 0 < number < _INTEGER_LIMIT else 0


def run_row(values: Iterable[Any]) -> RunRow:
    """Returns a run, from its columns."""
    row = RunRow._make(values)
    # A list of names is stored as JSON.
    needs = None if row.needs is None else tuple(json.loads(str(row.needs)))
    return row._replace(status=_parse_enum(Status, row.status), needs=needs)


def worker_rows(rows: Iterable[Iterable[Any]], alive: Alive) -> list[WorkerRow]:
    """Returns the workers that have to be believed alive, from their columns and their owners'."""
    workers = []
    for number, identity, host, pid, born, slots, running, capabilities, started_at, leased in rows:
        owner, able = Owner(identity, host, pid, born), tuple(json.loads(capabilities))
        if is_held(owner, alive, leased=bool(leased)):
            workers.append(WorkerRow(number, owner, slots, running, able, started_at))
    return workers


def inbox_item(values: Iterable[Any]) -> InboxItem:
    """Returns a request, from its columns."""
    item = InboxItem._make(values)
    return item._replace(
        kind=_parse_enum(RequestKind, item.kind), state=_parse_enum(ItemState, item.state)
    )


def inbox_lines(rows: Sequence[tuple[Any, ...]]) -> list[InboxLine]:
    """Returns what a list shows of requests, from these columns."""
    # Thousands of requests may be open, so each kind is looked up once.
    kinds = {kind: _parse_enum(RequestKind, kind) for kind in {row[3] for row in rows}}
    return [
        InboxLine(number, run, step, kinds[kind], prompt, opened_at, deadline)
        for number, run, step, kind, prompt, opened_at, deadline in rows
    ]


@cache
def _parse_enum(enum: type[E], value: str) -> E:
    try:
        return enum(value)
    except ValueError:
        raise StoreTooNew(
            f"the database contains {value!r}, which this version does not know; upgrade signoff, "
            "or restore a backup"
        ) from None
