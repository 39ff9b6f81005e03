"""Applies one commit to the database.

The compare-and-set comes first: if the run's head or fence is not the one the commit was
built on, another runner has taken over, and nothing of the commit is applied.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from signoff.core.digest import text_digest
from signoff.core.outcome import Status
from signoff.errors import StoreDamaged
from signoff.runtime.store_port import Commit, CommitResult, NewRun, RunId
from signoff.store import queries as q

_REFUSED = CommitResult(accepted=False)

_LARGEST_INTEGER = (1 << 63) - 1
"""The largest integer SQLite can store."""


def apply(db: sqlite3.Connection, commit: Commit) -> CommitResult:
    """Applies one commit inside the caller's transaction, completely or not at all."""
    run = commit.run if commit.new is None else _create_run(db, commit.new)
    seq = commit.head + 1
    if run is None or not _advance(db, commit, run, seq):
        return _REFUSED
    for digest, text in commit.blobs.items():
        db.execute(q.PUT_BLOB, (bytes.fromhex(digest), text))
    db.execute(q.APPEND, (run, seq, commit.events))
    if commit.ledger:
        db.executemany(q.PUT_LEDGER, [(run, *map(ledger_value, entry)) for entry in commit.ledger])
    if commit.checkpoint is not None:
        db.execute(q.PUT_CHECKPOINT, (run, seq, commit.checkpoint))
    if commit.opened or commit.used or commit.withdraw or commit.withdrawn:
        _update_inbox(db, run, commit)
    wake = commit.release and not _release(db, run, commit.status)
    return CommitResult(accepted=True, wake=wake, run=run)


def _create_run(db: sqlite3.Connection, new: NewRun) -> RunId | None:
    """Inserts a run's row; None if the name is taken."""
    description = bytes.fromhex(text_digest(new.description))
    db.execute(q.PUT_BLOB, (description, new.description))
    names = (new.name, new.workflow, new.target, new.definition, description)
    needs = None if new.needs is None else json.dumps(new.needs)
    values = (*names, new.created_at, new.created_at, new.owner, needs)
    try:
        cursor = db.execute(q.CREATE_RUN, values)
    except sqlite3.IntegrityError:
        return None
    return RunId(cursor.lastrowid or 0)


def _advance(db: sqlite3.Connection, commit: Commit, run: RunId, seq: int) -> bool:
    """Updates the run's row if head and fence still match."""
    guard = (run, commit.head, commit.fence)
    if commit.status is Status.RUNNING:
        # Most commits leave the status and the due time alone. This statement does not mention
        # those columns, so SQLite does not have to update their indexes.
        cursor = db.execute(
            q.ADVANCE_RUNNING, (seq, commit.step, commit.iteration, commit.at, *guard)
        )
        if cursor.rowcount == 1:
            return True
    values = (
        seq,
        commit.status.value,
        commit.step,
        commit.iteration,
        replace_surrogates(commit.reason),
        commit.due_at,
        commit.at,
    )
    return db.execute(q.ADVANCE, (*values, *guard)).rowcount == 1


def _update_inbox(db: sqlite3.Connection, run: RunId, commit: Commit) -> None:
    # Used answers come first, because a withdrawal also discards answers that were not used.
    for number in commit.used:
        if db.execute(q.USE_ITEM, (number,)).rowcount != 1:
            raise StoreDamaged(f"request #{number} has no unused answer")
    if commit.withdraw:
        db.execute(q.WITHDRAW, (run,))
    for number in commit.withdrawn:
        db.execute(q.WITHDRAW_ONE, (number, run))
    for item in commit.opened:
        db.execute(q.OPEN_ITEM, (run, *item._replace(prompt=replace_surrogates(item.prompt))))


def _release(db: sqlite3.Connection, run: RunId, status: Status) -> bool:
    """Releases a run; False if it is about to wait for an answer that is already there.

    The check and the release share one transaction. Otherwise an answer that arrives between
    the two would find no waiting run to wake, and the run would wait forever.
    """
    if status is Status.WAITING and db.execute(q.HAS_ANSWER, (run,)).fetchone():
        db.execute(q.KEEP_RUNNING, (run,))
        return False
    db.execute(q.RELEASE, (run,))
    return True


def ledger_value(value: Any) -> Any:
    """Returns a value that fits its column: what an agent reports must not stop the run."""
    return replace_surrogates(value) if isinstance(value, str) else min(value, _LARGEST_INTEGER)


def replace_surrogates(text: str) -> str:
    """Replaces half surrogate pairs, left by a truncated emoji, which SQLite cannot store.

    Only plain text columns need this: in the journal and in forms they are JSON escapes.
    """
    if text.isascii():
        return text
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
