"""What only the SQLite store sends: its statements for commits, claims and news, by name."""

from __future__ import annotations

import json
import sqlite3

from signoff.core.digest import text_digest
from signoff.core.outcome import Status
from signoff.errors import StoreDamaged
from signoff.runtime.store_port import Commit, CommitResult, NewRun, RunId
from signoff.store.base import RUN, ledger_value, replace_surrogates

CREATE_RUN = """
INSERT INTO runs (name, workflow, target, definition, description, created_at, updated_at, owner,
                  needs, status, fence)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'running', 1)
"""

ADVANCE = """
UPDATE runs
SET head = ?, status = ?, step = ?, iteration = ?, reason = ?, due_at = ?, updated_at = ?
WHERE id = ? AND head = ? AND fence = ?
"""
ADVANCE_RUNNING = """
UPDATE runs SET head = ?, step = ?, iteration = ?, updated_at = ?
WHERE id = ? AND head = ? AND fence = ? AND status = 'running'
"""
RELEASE = "UPDATE runs SET owner = NULL WHERE id = ?"
KEEP_RUNNING = "UPDATE runs SET status = 'running', due_at = NULL WHERE id = ?"
APPEND = "INSERT INTO journal (run, seq, events) VALUES (?, ?, ?)"
NAME = "SELECT name FROM runs WHERE id = ?"
JOURNAL = """
SELECT seq, events, json_valid(events) FROM journal WHERE run = ? AND seq > ? ORDER BY seq
"""

NEWEST_COMMIT = "SELECT run, seq FROM journal ORDER BY rowid DESC LIMIT 1"
COMMIT_PLACE = "SELECT rowid FROM journal WHERE run = ? AND seq = ?"
RUNS_COMMITTED_AFTER = f"""
SELECT {RUN} FROM runs WHERE id IN (SELECT run FROM journal WHERE rowid > ?) ORDER BY id
"""
# Both are answered by an index alone.
RUN_COUNTS = "SELECT status, count(*) FROM runs GROUP BY status"
REQUEST_COUNTS = (
    "SELECT count(*), max(id), sum(id) FROM inbox INDEXED BY inbox_open WHERE state = 'open'"
)

PUT_BLOB = "INSERT OR IGNORE INTO blobs (digest, text) VALUES (?, ?)"

PUT_CHECKPOINT = """
INSERT INTO checkpoints (run, seq, state) VALUES (?, ?, ?)
ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, state = excluded.state
"""
# An unreadable checkpoint is ignored: the journal contains everything that is in it.
CHECKPOINT = "SELECT seq, state FROM checkpoints WHERE run = ? AND json_valid(state)"

OPEN_ITEM = """
INSERT INTO inbox (run, name, effect, kind, prompt, form, digest, step, opened_at, deadline)
VALUES (?1, (SELECT name FROM runs WHERE id = ?1), ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
"""
USE_ITEM = "UPDATE inbox SET state = 'used' WHERE id = ? AND state = 'answered'"
WITHDRAW = "UPDATE inbox SET state = 'withdrawn' WHERE run = ? AND state IN ('open', 'answered')"
WITHDRAW_ONE = "UPDATE inbox SET state = 'withdrawn' WHERE id = ? AND run = ? AND state = 'open'"
HAS_ANSWER = "SELECT 1 FROM inbox WHERE run = ? AND state = 'answered' LIMIT 1"

PUT_LEDGER = """
INSERT OR REPLACE INTO ledger (run, step, agent, model, calls, tokens_in, tokens_out, usd,
                               unknown_tokens, unknown_usd, tokens_cached, unknown_cached)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


# Each part uses an index, so that runs that have ended or wait for long cost nothing. Whether an
# owner is alive cannot be asked in SQL.
CLAIMABLE = f"""
SELECT {RUN} FROM runs
WHERE id IN (
    SELECT id FROM runs WHERE status IN ('queued', 'running')
    UNION SELECT id FROM runs WHERE due_at <= :now AND status IN ('parked', 'waiting')
    UNION SELECT run FROM inbox WHERE state = 'answered'
          AND (SELECT status FROM runs WHERE id = run) = 'waiting'
) AND needs IS NOT NULL AND owner IS NOT :owner
  AND NOT EXISTS (SELECT 1 FROM json_each(needs) WHERE value NOT IN
                  (SELECT value FROM json_each(:capabilities)))
ORDER BY updated_at, id
"""
CLAIM = "UPDATE runs SET owner = ? WHERE id = ?"

DELETE_BLOB = "DELETE FROM blobs WHERE digest = ?"
DESCRIPTIONS = "SELECT lower(hex(description)) FROM runs"

SIZE = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
WITH_REFERENCES = (
    "SELECT events FROM journal",
    "SELECT state FROM checkpoints",
    "SELECT form FROM inbox",
    "SELECT answer FROM inbox",
    "SELECT outcome FROM late",
)
"""Every column whose JSON may refer to texts that are stored separately."""


# Applies one commit to the database.
#
# The compare-and-set comes first: if the run's head or fence is not the one the commit was
# built on, another runner has taken over, and nothing of the commit is applied.


_REFUSED = CommitResult(accepted=False)


def apply(db: sqlite3.Connection, commit: Commit) -> CommitResult:
    """Applies one commit inside the caller's transaction, completely or not at all."""
    run = commit.run if commit.new is None else _create_run(db, commit.new)
    seq = commit.head + 1
    if run is None or not _advance(db, commit, run, seq):
        return _REFUSED
    for digest, text in commit.blobs.items():
        db.execute(PUT_BLOB, (bytes.fromhex(digest), text))
    db.execute(APPEND, (run, seq, commit.events))
    if commit.ledger:
        db.executemany(PUT_LEDGER, [(run, *map(ledger_value, entry)) for entry in commit.ledger])
    if commit.checkpoint is not None:
        db.execute(PUT_CHECKPOINT, (run, seq, commit.checkpoint))
    if commit.opened or commit.used or commit.withdraw or commit.withdrawn:
        _update_inbox(db, run, commit)
    wake = commit.release and not _release(db, run, commit.status)
    return CommitResult(accepted=True, wake=wake, run=run)


def _create_run(db: sqlite3.Connection, new: NewRun) -> RunId | None:
    """Inserts a run's row; None if the name is taken."""
    description = bytes.fromhex(text_digest(new.description))
    db.execute(PUT_BLOB, (description, new.description))
    names = (new.name, new.workflow, new.target, new.definition, description)
    needs = None if new.needs is None else json.dumps(new.needs)
    values = (*names, new.created_at, new.created_at, new.owner, needs)
    try:
        cursor = db.execute(CREATE_RUN, values)
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
            ADVANCE_RUNNING, (seq, commit.step, commit.iteration, commit.at, *guard)
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
    return db.execute(ADVANCE, (*values, *guard)).rowcount == 1


def _update_inbox(db: sqlite3.Connection, run: RunId, commit: Commit) -> None:
    # Used answers come first, because a withdrawal also discards answers that were not used.
    for number in commit.used:
        if db.execute(USE_ITEM, (number,)).rowcount != 1:
            raise StoreDamaged(f"request #{number} has no unused answer")
    if commit.withdraw:
        db.execute(WITHDRAW, (run,))
    for number in commit.withdrawn:
        db.execute(WITHDRAW_ONE, (number, run))
    for item in commit.opened:
        db.execute(OPEN_ITEM, (run, *item._replace(prompt=replace_surrogates(item.prompt))))


def _release(db: sqlite3.Connection, run: RunId, status: Status) -> bool:
    """Releases a run; False if it is about to wait for an answer that is already there.

    The check and the release share one transaction. Otherwise an answer that arrives between
    the two would find no waiting run to wake, and the run would wait forever.
    """
    if status is Status.WAITING and db.execute(HAS_ANSWER, (run,)).fetchone():
        db.execute(KEEP_RUNNING, (run,))
        return False
    db.execute(RELEASE, (run,))
    return True
