"""Runs that wait for a worker, and the workers, in the SQLite store.

Each function runs inside the caller's transaction. A claim is a lease like any other: the worker's
row in `owners` decides for how long it is believed, and the run's fence who may write.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from signoff.core.outcome import FINAL
from signoff.runtime.store_port import (
    FORGOTTEN_SECONDS,
    Alive,
    Owner,
    RunId,
    RunRow,
    WorkerRow,
)
from signoff.store import queries as q
from signoff.store.rows import RENEWED_SECONDS, is_held, run_row, worker_rows


def enqueue(
    db: sqlite3.Connection, run: RunId, needs: Sequence[str], alive: Alive, now: float
) -> bool:
    """Hands a run to workers; False if it has ended or a process drives it."""
    row = run_row(db.execute(q.RUN_BY_ID, (run,)).fetchone())
    if row.status in FINAL or living_owner(db, row.owner, alive, now):
        return False
    db.execute(q.ENQUEUE, (json.dumps(needs), now, run))
    db.execute(q.RELEASE, (run,))
    return True


def claimable(
    db: sqlite3.Connection, owner: Owner, capabilities: Iterable[str], alive: Alive, now: float
) -> Iterator[RunRow]:
    """Yields the runs that this owner could claim now, the longest waiting first."""
    values = {
        "now": now,
        "owner": owner.id,
        "capabilities": json.dumps(sorted(capabilities)),
    }

    @cache
    def is_busy(other: str) -> bool:
        return living_owner(db, other, alive, now) is not None

    for values_of_row in db.execute(q.CLAIMABLE, values):
        row = run_row(values_of_row)
        if row.owner is None or not is_busy(row.owner):
            yield row


def claim(db: sqlite3.Connection, owner: Owner, rows: Iterable[RunRow]) -> list[RunRow]:
    """Gives runs to an owner."""
    claimed = [row._replace(owner=owner.id) for row in rows]
    db.executemany(q.CLAIM, [(owner.id, row.id) for row in claimed])
    return claimed


def register(
    db: sqlite3.Connection, owner: Owner, slots: int, capabilities: Iterable[str], now: float
) -> int:
    """Lists an owner as a worker, and removes those that are long dead; returns its number."""
    db.execute(q.FORGET_OWNERS, (now - FORGOTTEN_SECONDS,))
    db.execute(q.FORGET_WORKERS)
    values = (owner.id, slots, json.dumps(sorted(capabilities)), now)
    db.execute(q.REGISTER, values)
    return int(db.execute(q.WORKER_NUMBER, (owner.id,)).fetchone()[0])


def workers(db: sqlite3.Connection, alive: Alive, now: float) -> list[WorkerRow]:
    """Returns the workers that have to be believed alive, the oldest first."""
    return worker_rows(db.execute(q.WORKERS, (now,)), alive)


def put_owner(db: sqlite3.Connection, owner: Owner, until: float) -> None:
    """Renews all leases of an owner."""
    db.execute(q.PUT_OWNER, (owner.id, owner.host, owner.pid, owner.born, until))


def living_owner(
    db: sqlite3.Connection,
    identity: str | None,
    alive: Alive,
    now: float,
    *,
    is_later: bool = False,
) -> Owner | None:
    """Returns an owner that has to be believed alive; None if it is dead or unknown.

    `is_later` is whether a later attempt of a dispatcher wants its run.
    """
    lease = None if identity is None else db.execute(q.OWNER, (identity,)).fetchone()
    if lease is None:
        return None
    *fields, until = lease
    owner = Owner(*fields)
    leased = until > now + (RENEWED_SECONDS if is_later else 0.0)
    return owner if is_held(owner, alive, leased=leased) else None
