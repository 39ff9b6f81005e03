"""What one commit changes in the database.

The compare-and-set comes first: if the run's head and fence are not what the commit was
built on, somebody else has been here, and nothing of it is done.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from signoff.core.digest import text_digest
from signoff.core.outcome import Status
from signoff.errors import StoreDamaged
from signoff.runtime.store_port import Commit, CommitResult, NewRun, RunId
from signoff.store import queries as q

_REFUSED = CommitResult(accepted=False)

_MOST = (1 << 63) - 1
"""The largest number SQLite counts to."""


def apply(db: sqlite3.Connection, c: Commit) -> CommitResult:
    """Applies one commit inside the caller's transaction, wholly or not at all."""
    run = c.run if c.new is None else _created(db, c.new)
    seq = c.head + 1
    if run is None or not _advance(db, c, run, seq):
        return _REFUSED
    for digest, text in c.blobs.items():
        db.execute(q.PUT_BLOB, (bytes.fromhex(digest), text))
    db.execute(q.APPEND, (run, seq, c.events))
    if c.ledger:
        db.executemany(q.PUT_LEDGER, [(run, *map(_column, entry)) for entry in c.ledger])
    if c.checkpoint is not None:
        db.execute(q.PUT_CHECKPOINT, (run, seq, c.checkpoint))
    if c.opened or c.used or c.withdraw or c.withdrawn:
        _turn_items(db, run, c)
    wake = c.release and not _released(db, run, c.status)
    return CommitResult(accepted=True, wake=wake, run=run)


def _created(db: sqlite3.Connection, new: NewRun) -> RunId | None:
    """Makes a run's row; None when the name is taken."""
    description = bytes.fromhex(text_digest(new.description))
    db.execute(q.PUT_BLOB, (description, new.description))
    names = (new.name, new.workflow, new.target, new.definition, description)
    try:
        made = db.execute(q.CREATE_RUN, (*names, new.created_at, new.created_at, new.owner))
    except sqlite3.IntegrityError:
        return None
    return RunId(made.lastrowid or 0)


def _advance(db: sqlite3.Connection, c: Commit, run: RunId, seq: int) -> bool:
    """Moves the run's row on, if it is still ours."""
    guard = (run, c.head, c.fence)
    if c.status is Status.RUNNING:
        # Most commits leave status and due time alone, and so need not touch their indexes.
        moved = db.execute(q.ADVANCE_RUNNING, (seq, c.step, c.iteration, c.at, *guard))
        if moved.rowcount == 1:
            return True
    place = (seq, c.status.value, c.step, c.iteration, whole(c.reason), c.due_at, c.at)
    return db.execute(q.ADVANCE, (*place, *guard)).rowcount == 1


def _turn_items(db: sqlite3.Connection, run: RunId, c: Commit) -> None:
    # First what is used: a withdrawal takes back every answer that nobody needed.
    for number in c.used:
        if db.execute(q.USE_ITEM, (number,)).rowcount != 1:
            raise StoreDamaged(f"the answer to request #{number} was used before")
    if c.withdraw:
        db.execute(q.WITHDRAW, (run,))
    for number in c.withdrawn:
        db.execute(q.WITHDRAW_ONE, (number, run))
    for item in c.opened:
        db.execute(q.OPEN_ITEM, (run, *item._replace(prompt=whole(item.prompt))))


def _released(db: sqlite3.Connection, run: RunId, status: Status) -> bool:
    """Lets go of a run, unless it wants to wait for an answer that is already there."""
    if status is Status.WAITING and db.execute(q.HAS_ANSWER, (run,)).fetchone():
        db.execute(q.KEEP_RUNNING, (run,))
        return False
    db.execute(q.RELEASE, (run,))
    return True


def _column(value: Any) -> Any:
    """Returns what the ledger holds of a name or number; who says it must not stop the run."""
    return whole(value) if isinstance(value, str) else min(value, _MOST)


def whole(text: str) -> str:
    """Replaces half characters, as a cut-off emoji leaves behind, which no text column takes.

    Only what is shown to people needs this: in the journal and in forms they are escaped.
    """
    if text.isascii():
        return text
    return "".join("\ufffd" if "\ud800" <= each <= "\udfff" else each for each in text)
