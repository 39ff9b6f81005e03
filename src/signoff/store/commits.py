"""How a commit is applied, in every store alike.

The compare-and-set comes first: if head or fence are not those that a commit was built on, another
runner has taken over, and nothing of the commit is applied. It also locks the row of the run until
the transaction ends, so what follows sees every answer that came before. The notation of the SQL is
that of `store.base`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from signoff.core import errors
from signoff.core.digest import text_digest
from signoff.core.outcome import Status
from signoff.runtime import store_port as port
from signoff.runtime.store_port import CommitResult, RunId

Row = tuple[Any, ...]
RunText = tuple[RunId, str, str]
"""A run, the digest of a text that it uses, and the text."""

INTEGER_LIMIT = 1 << 63
"""The integers of databases are smaller than this."""

SUMS = (
    "calls", "tokens_in", "tokens_out", "usd", "unknown_tokens", "unknown_usd", "tokens_cached",
    "unknown_cached",
)  # fmt: skip
COSTS = ", ".join(SUMS)

_CREATE_RUN = """
INSERT INTO {s}.runs (name, workflow, target, definition, description, created_at, updated_at,
                      owner, needs, status, fence)
VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8, 'running', 1) ON CONFLICT (name) DO NOTHING
"""
_RUN_ID = "SELECT id FROM {s}.runs WHERE name = $1"
_ADVANCE = """
UPDATE {s}.runs
SET head = $1, status = $2, step = $3, iteration = $4, reason = $5, due_at = $6, updated_at = $7
WHERE id = $8 AND head = $9 AND fence = $10
"""
_ADVANCE_RUNNING = """
UPDATE {s}.runs SET head = $1, step = $2, iteration = $3, updated_at = $4
WHERE id = $5 AND head = $6 AND fence = $7 AND status = 'running'
"""
_RELEASE = "UPDATE {s}.runs SET owner = NULL WHERE id = $1"
_KEEP_RUNNING = "UPDATE {s}.runs SET status = 'running', due_at = NULL WHERE id = $1"
_PUT_CHECKPOINT = """
INSERT INTO {s}.checkpoints (run, seq, state) VALUES ($1, $2, $3)
ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, state = excluded.state
"""
_OPEN_ITEM = """
INSERT INTO {s}.inbox (run, name, effect, kind, prompt, form, digest, step, opened_at, deadline)
VALUES ($1, (SELECT name FROM {s}.runs WHERE id = $1), $2, $3, $4, $5, $6, $7, $8, $9)
"""
_USE_ITEM = "UPDATE {s}.inbox SET state = 'used' WHERE id = $1 AND state = 'answered'"
_WITHDRAW = """
UPDATE {s}.inbox SET state = 'withdrawn' WHERE run = $1 AND state IN ('open', 'answered')
"""
_WITHDRAW_ONE = """
UPDATE {s}.inbox SET state = 'withdrawn' WHERE id = $1 AND run = $2 AND state = 'open'
"""
_HAS_ANSWER = "SELECT 1 FROM {s}.inbox WHERE run = $1 AND state = 'answered' LIMIT 1"


def insert_into(table: str, columns: str) -> str:
    places = ", ".join(f"${number}" for number in range(1, columns.count(",") + 2))
    return f"INSERT INTO {{s}}.{table} ({columns}) VALUES ({places})"


PUT_LEDGER = f"""
{insert_into("ledger", f"run, step, agent, model, {COSTS}")}
ON CONFLICT (run, step, agent, model)
DO UPDATE SET {", ".join(f"{name} = excluded.{name}" for name in SUMS)}
"""


class StoreSession(Protocol):
    """A connection during one call; what a call writes is one transaction."""

    def rows(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """Runs a statement and returns its rows."""

    def run(self, sql: str, values: Sequence[object] = ()) -> int:
        """Runs a statement and returns how many rows it changed."""

    def run_many(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        """Runs a statement once for each row of values."""


class CommitTarget(Protocol):
    """What a store does in its own way when a commit is applied."""

    add_commit: str
    """The statement that inserts a run, a number and the events of a commit."""

    def put_texts(self, session: StoreSession, texts: Iterable[RunText]) -> None:
        """Stores texts, each for a run that uses it."""


def apply(
    store: CommitTarget, session: StoreSession, commits: Sequence[port.Commit]
) -> list[CommitResult]:
    """Applies commits inside the caller's transaction, each completely or not at all."""
    results = [_apply(commit, store.add_commit, session) for commit in commits]
    # Last and in order: two processes that store the same texts never wait for each other.
    if texts := sorted(_texts_of(commits, results), key=lambda text: text[1]):
        store.put_texts(session, texts)
    return results


def _apply(commit: port.Commit, add_commit: str, session: StoreSession) -> CommitResult:
    run = commit.run if commit.new is None else _create_run(commit.new, session)
    seq = commit.head + 1
    if run is None or not _advance(commit, run, session):
        return CommitResult(accepted=False)
    session.run(add_commit, (run, seq, commit.events))
    if commit.ledger:
        costs = [(run, *map(_ledger_value, entry)) for entry in commit.ledger]
        session.run_many(PUT_LEDGER, costs)
    if commit.checkpoint is not None:
        session.run(_PUT_CHECKPOINT, (run, seq, commit.checkpoint))
    if commit.opened or commit.used or commit.withdraw or commit.withdrawn:
        _update_inbox(commit, run, session)
    wake = commit.release and not _release(run, commit.status, session)
    return CommitResult(accepted=True, wake=wake, run=run)


def _create_run(new: port.NewRun, session: StoreSession) -> RunId | None:
    """Inserts a run's row; None if the name is taken."""
    needs = None if new.needs is None else json.dumps(new.needs)
    description = bytes.fromhex(text_digest(new.description))
    names = (new.name, new.workflow, new.target, new.definition)
    if not session.run(_CREATE_RUN, (*names, description, new.created_at, new.owner, needs)):
        return None
    return RunId(session.rows(_RUN_ID, [new.name])[0][0])


def _advance(commit: port.Commit, run: RunId, session: StoreSession) -> bool:
    """Updates the run's row if head and fence still match."""
    seq, guard = commit.head + 1, (run, commit.head, commit.fence)
    place = (commit.step, commit.iteration)
    # Most commits leave the status and the due time alone. This statement does not mention those
    # columns, so the database does not have to update their indexes.
    if commit.status is Status.RUNNING and session.run(
        _ADVANCE_RUNNING, (seq, *place, commit.at, *guard)
    ):
        return True
    reason = replace_refused(commit.reason)
    values = (seq, commit.status.value, *place, reason, commit.due_at, commit.at, *guard)
    return session.run(_ADVANCE, values) == 1


def _update_inbox(commit: port.Commit, run: RunId, session: StoreSession) -> None:
    # Used answers come first, because a withdrawal also discards answers that were not used.
    for number in commit.used:
        if session.run(_USE_ITEM, [number]) != 1:
            raise errors.StoreDamaged(f"request #{number} has no unused answer")
    if commit.withdraw:
        session.run(_WITHDRAW, [run])
    for number in commit.withdrawn:
        session.run(_WITHDRAW_ONE, [number, run])
    opened = [item._replace(prompt=replace_refused(item.prompt)) for item in commit.opened]
    session.run_many(_OPEN_ITEM, [(run, *item) for item in opened])


def _release(run: RunId, status: Status, session: StoreSession) -> bool:
    """Releases a run; False if it is about to wait for an answer that is already there.

    The check and the release share one transaction. Otherwise an answer that arrives between
    the two would find no waiting run to wake, and the run would wait forever.
    """
    if status is Status.WAITING and session.rows(_HAS_ANSWER, [run]):
        session.run(_KEEP_RUNNING, [run])
        return False
    session.run(_RELEASE, [run])
    return True


def _texts_of(commits: Sequence[port.Commit], results: Sequence[CommitResult]) -> Iterator[RunText]:
    """Yields the texts of the commits that were accepted."""
    for commit, result in zip(commits, results, strict=True):
        if result.run is not None:
            for digest, text in commit.blobs.items():
                yield result.run, digest, text
            if commit.new is not None:
                yield result.run, text_digest(commit.new.description), commit.new.description


def _ledger_value(value: Any) -> Any:
    """Returns a value that fits its column: what an agent reports must not stop the run."""
    return replace_refused(value) if isinstance(value, str) else min(value, INTEGER_LIMIT - 1)


def replace_refused(text: str) -> str:
    """Replaces NUL and half surrogate pairs, left by a truncated emoji: databases refuse them.

    Only plain text columns need this: in the journal and in forms they are JSON escapes.
    """
    if text.isascii() and "\x00" not in text:
        return text
    return "".join(
        "\ufffd" if char == "\x00" or "\ud800" <= char <= "\udfff" else char for char in text
    )
