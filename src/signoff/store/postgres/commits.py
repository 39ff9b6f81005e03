"""Applies commits to the database: one statement, however many runs it is about.

The statement's first part compares the head and the fence of each run with those the commit was
built on, and advances the runs that match. All other parts write only what belongs to those. So
a commit of a runner that has lost its run changes nothing, and all of it is one round trip.

Only a run that is about to wait needs a second statement in the same transaction. It has to see
an answer that arrived while the first one waited for the run's row, and a statement sees nothing
that was committed after it began.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from signoff.core.digest import text_digest
from signoff.core.outcome import Status
from signoff.errors import StoreDamaged
from signoff.postgres_driver import driver
from signoff.runtime.listener_port import Topic
from signoff.runtime.store_port import Commit, CommitResult, RunId
from signoff.store.commits import ledger_value, replace_surrogates
from signoff.store.postgres import queries as q
from signoff.store.postgres.commit_sql import (
    BLOBS,
    LEDGER,
    NEW_COLUMNS,
    OPENED,
    USED,
    USED_ONE,
    WITHDRAWN,
    CommitForm,
    commit_statement,
)
from signoff.store.postgres.connection import Row, ServerSession, TypedStatement
from signoff.store.postgres.texts import stored_text

REFUSED = CommitResult(accepted=False)

COMMITTED = """
SELECT runs.id, runs.owner, runs.fence, journal.fence, journal.events
FROM {s}.runs JOIN {s}.journal ON journal.run = runs.id AND journal.seq = $2
WHERE CASE WHEN $3::text IS NULL THEN runs.id = $1 ELSE runs.name = $3 END
"""

RELEASE = """
UPDATE {s}.runs
SET owner = CASE WHEN wakes THEN runs.owner END,
    status = CASE WHEN wakes THEN 'running' ELSE runs.status END,
    due_at = CASE WHEN NOT wakes THEN runs.due_at END
FROM (
    SELECT t.*, EXISTS (SELECT 1 FROM {s}.inbox
                        WHERE inbox.run = t.run AND state = 'answered') AS wakes
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS t (run, head, fence)
) AS resting
WHERE runs.id = resting.run AND runs.head = resting.head AND runs.fence = resting.fence
RETURNING runs.id, wakes
"""


class _Part(NamedTuple):
    """One optional part of the statement, and the columns of its rows."""

    sql: str
    rows: Sequence[Row]


def apply(session: ServerSession, schema: str, commits: Sequence[Commit]) -> list[CommitResult]:
    """Applies commits in one transaction, each completely or not at all."""
    batches = _batches(commits)
    try:
        if len(batches) == 1:
            return _apply_batch(session, schema, commits)
        with session.transaction():
            return [result for batch in batches for result in _apply_batch(session, schema, batch)]
    except driver().errors.DivisionByZero as error:
        raise StoreDamaged("a commit uses an answer that the database does not have") from error


def read_back(session: ServerSession, schema: str, commit: Commit) -> CommitResult:
    """Returns what became of a commit whose answer was lost, from what the database has now."""
    name = commit.new.name if commit.new is not None else None
    values = [commit.run, commit.head + 1, name]
    for run, owner, fence, by_fence, events in session.rows(q.in_schema(COMMITTED, schema), values):
        if (by_fence, events) == (commit.fence, commit.events):
            wake = _waits(commit) and fence == commit.fence and owner is not None
            return CommitResult(accepted=True, wake=wake, run=RunId(run))
    return REFUSED


def _batches(commits: Sequence[Commit]) -> list[list[Commit]]:
    """Splits commits where a run occurs again, which one statement could not change twice."""
    batches: list[list[Commit]] = []
    seen: set[int | str] = set()
    for commit in commits:
        run = commit.run if commit.new is None else commit.new.name
        if not batches or run in seen:
            batches.append([])
            seen.clear()
        seen.add(run)
        batches[-1].append(commit)
    return batches


def _apply_batch(
    session: ServerSession, schema: str, commits: Sequence[Commit]
) -> list[CommitResult]:
    statement, values = _statement(schema, commits)
    # A new run has no answers yet, so it is released together with being created.
    resting = [(c.run, c.head + 1, c.fence) for c in commits if c.new is None and _waits(c)]
    woken: dict[int, bool] = {}
    accepted: Sequence[Row]
    if resting:
        release = q.in_schema(RELEASE, schema), _columns(resting)
        accepted, released = session.together((statement.sql, values), release)
        woken.update(released)
    else:
        # For many runs the server plans again: a plan for any number of them would be a slow one.
        accepted = session.numbers(statement, values, keep_plan=len(commits) == 1)
    results = [REFUSED] * len(commits)
    for n, run, *_ in accepted:
        results[n - 1] = CommitResult(accepted=True, wake=woken.get(run, False), run=RunId(run))
    return results


def _waits(commit: Commit) -> bool:
    return commit.release and commit.status is Status.WAITING


def _statement(schema: str, commits: Sequence[Commit]) -> tuple[TypedStatement, list[object]]:
    creates = any(commit.new is not None for commit in commits)
    rows = [_input_row(commit, creates) for commit in commits]
    values: list[object] = list(rows[0]) if len(rows) == 1 else _columns(rows)
    parts = [part for part in _parts(commits) if part.rows]
    for part in parts:
        values += part.rows[0] if part.sql is WITHDRAWN else _columns(part.rows)
    texts = tuple(part.sql for part in parts)
    checkpoint = any(commit.checkpoint is not None for commit in commits)
    form = CommitForm(len(rows) == 1, creates, checkpoint, _topic(commits))
    return commit_statement(schema, form, texts), values


def _topic(commits: Sequence[Commit]) -> Topic | None:
    """Returns the topics to notify; none for a commit in the middle of a run.

    Transactions that notify are committed one after the other by the server, so few may.
    """
    if any(_gives_work(commit) for commit in commits):
        return Topic.WORK
    if any(each.release or each.opened or each.new is not None for each in commits):
        return Topic.RUNS
    return None


def _gives_work(commit: Commit) -> bool:
    handed_over = commit.new is not None and commit.new.needs is not None
    return handed_over or (commit.release and commit.status is Status.QUEUED)


def _input_row(commit: Commit, creates: bool) -> Row:
    new = commit.new
    row = (
        commit.run if new is None else 0,
        commit.head,
        commit.fence,
        commit.status.value,
        commit.step,
        commit.iteration,
        _text_value(commit.reason),
        commit.due_at,
        commit.at,
        commit.events,
        commit.release and (new is not None or commit.status is not Status.WAITING),
        commit.withdraw,
        commit.checkpoint,
    )
    if not creates:
        return row
    if new is None:
        return (*row, *(None,) * len(NEW_COLUMNS))
    description = bytes.fromhex(text_digest(new.description))
    names = (new.name, new.workflow, new.target, new.definition)
    needs = None if new.needs is None else json.dumps(new.needs)
    return (*row, *names, description, new.created_at, new.owner, needs)


def _parts(commits: Sequence[Commit]) -> list[_Part]:
    numbered = list(enumerate(commits, 1))
    used = [(n, item) for n, c in numbered for item in c.used]
    used_part = (
        _Part(USED, used) if len(commits) > 1 else _Part(USED_ONE, [each[1:] for each in used])
    )
    withdrawn = [item for c in commits for item in c.withdrawn]
    withdraws = bool(withdrawn) or any(c.withdraw for c in commits)
    opened = [
        (n, *item._replace(prompt=_text_value(item.prompt), form=stored_text(item.form)))
        for n, c in numbered
        for item in c.opened
    ]
    return [
        _Part(BLOBS, list(_blob_rows(numbered))),
        _Part(LEDGER, list(_ledger_rows(numbered))),
        _Part(OPENED, opened),
        used_part,
        _Part(WITHDRAWN, [(withdrawn, [item for _, item in used])] if withdraws else []),
    ]


def _blob_rows(numbered: Iterable[tuple[int, Commit]]) -> Iterable[Row]:
    for n, commit in numbered:
        if commit.new is not None:
            text = commit.new.description
            yield n, bytes.fromhex(text_digest(text)), stored_text(text)
        for digest, text in commit.blobs.items():
            yield n, bytes.fromhex(digest), stored_text(text)


def _ledger_rows(numbered: Iterable[tuple[int, Commit]]) -> Iterable[Row]:
    for n, commit in numbered:
        # Names that differ only in what cannot be stored become one entry: the last.
        rows = [(n, *map(_ledger_cell, entry)) for entry in commit.ledger]
        yield from {row[:4]: row for row in rows}.values()


def _ledger_cell(value: Any) -> Any:
    plain = ledger_value(value)
    return stored_text(plain) if isinstance(plain, str) else plain


def _text_value(text: str) -> str:
    return stored_text(replace_surrogates(text))


def _columns(rows: Sequence[Row]) -> list[object]:
    return [list(column) for column in zip(*rows, strict=True)]
