"""Moves runs that are at rest to another store.

Killed at any point, it can be started again and finishes what it began; `transfer_port` explains
why nothing is lost or doubled.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from signoff.app.project import Project
from signoff.app.run_records import live_row, live_rows
from signoff.core.outcome import Status
from signoff.core.requests import ItemState
from signoff.errors import NameTaken, RunBusy, StoreDamaged, UnknownName, UsageError
from signoff.remedies import CancelRun
from signoff.runtime.owner import is_alive, this_process
from signoff.runtime.run_transfer import parse_copy, read_copy, text_id
from signoff.runtime.store_port import Owner, RunRow, Store

HOLD_SECONDS = 600.0
"""How long a run stays ours if this process is killed and its death cannot be seen."""

_PASSWORD = re.compile(r"(?<=://)([^/@:]*):[^/@]*(?=@)")
_PASSWORD_OPTION = re.compile(r"[a-z]*password=")


@dataclass(frozen=True)
class MovedRun:
    """A run that was moved."""

    name: str
    commits: int
    requests: int
    digest: str
    """Of its content, which both stores agreed on."""
    pending: tuple[tuple[int | None, int], ...] = ()
    """The old and the new number of each pending request: every store numbers its own. The old one
    is None if an earlier mover, which was killed, has read it."""

    def to_json(self) -> dict[str, Any]:
        """Returns it as plain values."""
        return {
            "run": self.name,
            "commits": self.commits,
            "requests": self.requests,
            "digest": self.digest,
            "pending": [{"old": old, "new": new} for old, new in self.pending],
        }


def move_runs(
    project: Project,
    target: Store,
    address: str,
    names: Iterable[str] | None,
    report: Callable[[MovedRun], None],
) -> tuple[list[MovedRun], list[str]]:
    """Moves the named runs, or all that are at rest, and reports each.

    Returns them, and the names of those that were left out because they are running.
    """
    rows = list(live_rows(project.store, project.store.rows())) if names is None else []
    running = [row.name for row in rows if row.status is Status.RUNNING]
    at_rest = [row.name for row in rows if row.status is not Status.RUNNING]
    moved = []
    for name in at_rest if names is None else dict.fromkeys(names):
        try:
            moved.append(move_run(project.store, target, name, address))
        except RunBusy:
            # Of all runs, one may have been started meanwhile.
            if names is not None:
                raise
            running.append(name)
        else:
            report(moved[-1])
    return moved, running


def move_run(source: Store, target: Store, name: str, address: str) -> MovedRun:
    """Moves one run; raises `RunBusy` if a process drives it, `NameTaken` if the target has one."""
    try:
        row = source.row(name)
    except UnknownName:
        # An earlier mover was killed after the old store gave the run up: it only has to arrive.
        if target.transfer().staged(name) is None:
            raise
        return _admit(target, name, [])
    if live_row(source, row).status is Status.RUNNING:
        problem = f"run {name!r} is running, so it is not moved; wait until it rests"
        raise RunBusy(problem, remedy=CancelRun(name))
    _refuse_taken(target, name)
    with _held(source, row) as fence:
        numbers = _send(source, target, source.row(name), fence, address)
    return _admit(target, name, numbers)


def public_address(address: str) -> str:
    """Returns an address without its passwords, to show it and to remember where a run went."""
    base, _, query = address.partition("?")
    options = [each for each in query.split("&") if not _PASSWORD_OPTION.match(each)]
    return "?".join(filter(None, [_PASSWORD.sub(r"\1", base), "&".join(options)]))


def _refuse_taken(target: Store, name: str) -> None:
    try:
        target.row(name)
    except UnknownName:
        return
    raise NameTaken(f"run {name!r} already exists in the other store; delete or rename one")


@contextmanager
def _held(source: Store, row: RunRow) -> Iterator[int]:
    """Takes a run, so that no other process drives it, and gives it back if it stays."""
    owner: Owner = this_process()
    fence = source.take(row.id, owner, is_alive, lease_seconds=HOLD_SECONDS)
    try:
        yield fence
    finally:
        source.leave(owner)


def _send(source: Store, target: Store, row: RunRow, fence: int, address: str) -> list[int]:
    """Gives a run up to the other store; returns the numbers that its requests had here."""
    while True:
        copy = read_copy(source, row)
        document = copy.to_text()
        target.transfer().stage(row.name, document)
        if target.transfer().staged(row.name) != document:
            raise StoreDamaged(f"the other store did not keep run {row.name!r} as it was sent")
        # Someone may answer a request while it is copied; then it is copied again.
        if source.transfer().retire(row.id, fence, copy.requests, public_address(address)):
            return [item.id for item in copy.items]
        if source.row(row.name).fence != fence:
            raise RunBusy(f"another process has taken run {row.name!r}; it was not moved")


def _admit(target: Store, name: str, numbers: list[int]) -> MovedRun:
    document = target.transfer().staged(name)
    if document is None:
        raise UsageError(f"run {name!r} is being moved by another process")
    target.transfer().admit(name)
    sent = parse_copy(document)
    # From now on it is a run like any other there, and may continue while it is compared.
    arrived = read_copy(target, target.row(name))
    same_journal = arrived.journal[: len(sent.journal)] == sent.journal
    if not same_journal or not sent.blobs.items() <= arrived.blobs.items():
        raise StoreDamaged(f"run {name!r} is not in the other store as it was sent; report this")
    old = [*numbers, *[None] * (len(sent.items) - len(numbers))]
    pending = tuple(
        (before, item.id)
        for before, item in zip(old, arrived.items, strict=False)
        if item.state is ItemState.OPEN
    )
    return MovedRun(name, len(sent.journal), len(sent.items), text_id(document), pending)
