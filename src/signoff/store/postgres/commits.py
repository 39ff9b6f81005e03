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
import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple

from signoff.core.digest import text_digest
from signoff.core.outcome import Status
from signoff.errors import StoreDamaged
from signoff.postgres_driver import driver
from signoff.runtime.store_port import Commit, CommitResult, RunId
from signoff.store.commits import ledger_value, replace_surrogates
from signoff.store.postgres import queries as q
from signoff.store.postgres.binary_values import encoder_of
from signoff.store.postgres.connection import Row, ServerSession, TypedStatement
from signoff.store.postgres.texts import stored_text

REFUSED = CommitResult(accepted=False)

_INPUT = (
    "run bigint", "head bigint", "fence bigint", "status text", "step text", "iteration bigint",
    "reason text", "due_at float8", "at float8", "events text", "leaves boolean",
    "withdraw boolean", "checkpoint text",
)  # fmt: skip
"""What every commit has. `leaves` is whether the run is released at once."""
_NEW = (
    "name text", "workflow text", "target text", "definition text", "description bytea",
    "created_at float8", "owner text", "needs text",
)  # fmt: skip
"""What a commit has that creates its run."""

# A single commit needs no table of its values, and its events reach the journal uncopied.
_ADVANCED_ONE = """
advanced AS (
    UPDATE {s}.runs SET head = $2::bigint + 1, status = $4::text, step = $5::text,
        iteration = $6::bigint, reason = $7::text, due_at = $8::float8, updated_at = $9::float8,
        owner = CASE WHEN NOT $11::boolean THEN owner END
    WHERE id = $1::bigint AND head = $2::bigint AND fence = $3::bigint
    RETURNING id, name
)"""
_ACCEPTED_ONE = """
accepted AS NOT MATERIALIZED (
    SELECT 1 AS n, id, name, $2::bigint AS head, $3::bigint AS fence, $10::text AS events,
           $12::boolean AS withdraw, $13::text AS checkpoint
    FROM advanced
)"""
_CREATED_ONE = """
advanced AS (
    INSERT INTO {s}.runs (name, workflow, target, definition, description, created_at, updated_at,
                          owner, needs, status, step, iteration, reason, due_at, head, fence)
    VALUES ($14::text, $15::text, $16::text, $17::text, $18::bytea, $19::float8, $9::float8,
            CASE WHEN NOT $11::boolean THEN $20::text END, $21::text, $4::text, $5::text,
            $6::bigint, $7::text, $8::float8, 1, 1)
    ON CONFLICT (name) DO NOTHING
    RETURNING id, name
)"""
_ADVANCED = """
advanced AS (
    UPDATE {s}.runs SET head = input.head + 1, status = input.status, step = input.step,
        iteration = input.iteration, reason = input.reason, due_at = input.due_at,
        updated_at = input.at, owner = CASE WHEN NOT input.leaves THEN runs.owner END
    FROM input
    WHERE runs.id = input.run AND runs.head = input.head AND runs.fence = input.fence
    RETURNING input.n, runs.id, runs.name, input.head, input.fence, input.events,
              input.checkpoint, input.withdraw
)"""
_CREATED = """
created AS (
    INSERT INTO {s}.runs (name, workflow, target, definition, description, created_at, updated_at,
                          owner, needs, status, step, iteration, reason, due_at, head, fence)
    SELECT name, workflow, target, definition, description, created_at, at,
           CASE WHEN NOT leaves THEN owner END, needs, status, step, iteration, reason, due_at, 1, 1
    FROM input WHERE name IS NOT NULL ORDER BY n
    ON CONFLICT (name) DO NOTHING
    RETURNING id, name
)"""
_ACCEPTED = "accepted AS (SELECT * FROM advanced)"
_ACCEPTED_OR_CREATED = """
accepted AS (
    SELECT * FROM advanced
    UNION ALL
    SELECT n, created.id, name, head, fence, events, checkpoint, withdraw
    FROM created JOIN input USING (name)
)"""
_JOURNAL = """
INSERT INTO {s}.journal (run, seq, fence, events)
SELECT id, head + 1, fence, events FROM accepted
"""
_BLOBS = """
text AS (SELECT * FROM unnest({0}::int[], {1}::bytea[], {2}::text[]) AS t (n, digest, text)),
blobs AS (
    INSERT INTO {s}.blobs (digest, text)
    SELECT digest, text FROM text JOIN accepted USING (n) ORDER BY digest
    ON CONFLICT DO NOTHING
), uses AS (
    INSERT INTO {s}.blob_uses (digest, run)
    SELECT digest, id FROM text JOIN accepted USING (n) ORDER BY digest
    ON CONFLICT DO NOTHING
)"""
_CHECKPOINTS = """
checkpoints AS (
    INSERT INTO {s}.checkpoints (run, seq, state)
    SELECT id, head + 1, checkpoint FROM accepted
    WHERE checkpoint IS NOT NULL
    ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, state = excluded.state
)"""
_LEDGER = """
ledger AS (
    INSERT INTO {s}.ledger (run, step, agent, model, calls, tokens_in, tokens_out, usd,
                            unknown_tokens, unknown_usd, tokens_cached, unknown_cached)
    SELECT id, step, agent, model, calls, tokens_in, tokens_out, usd, unknown_tokens, unknown_usd,
           tokens_cached, unknown_cached
    FROM unnest({0}::int[], {1}::text[], {2}::text[], {3}::text[], {4}::bigint[], {5}::bigint[],
                {6}::bigint[], {7}::float8[], {8}::bigint[], {9}::bigint[], {10}::bigint[],
                {11}::bigint[])
         AS t (n, step, agent, model, calls, tokens_in, tokens_out, usd, unknown_tokens,
               unknown_usd, tokens_cached, unknown_cached)
         JOIN accepted USING (n)
    ON CONFLICT (run, step, agent, model) DO UPDATE SET
        calls = excluded.calls, tokens_in = excluded.tokens_in,
        tokens_out = excluded.tokens_out, usd = excluded.usd,
        unknown_tokens = excluded.unknown_tokens, unknown_usd = excluded.unknown_usd,
        tokens_cached = excluded.tokens_cached, unknown_cached = excluded.unknown_cached
)"""
_OPENED = """
opened AS (
    INSERT INTO {s}.inbox (run, name, effect, kind, prompt, form, digest, step, opened_at,
                           deadline)
    SELECT id, name, effect, kind, prompt, form, digest, step, opened_at, deadline
    FROM unnest({0}::int[], {1}::text[], {2}::text[], {3}::text[], {4}::text[], {5}::text[],
                {6}::text[], {7}::float8[], {8}::float8[]) WITH ORDINALITY
         AS t (n, effect, kind, prompt, form, digest, step, opened_at, deadline, position)
         JOIN accepted USING (n)
    ORDER BY position
)"""
_USED = """
answer AS (SELECT * FROM unnest({0}::int[], {1}::bigint[]) AS t (n, item) JOIN accepted USING (n)),
used AS (
    UPDATE {s}.inbox SET state = 'used' FROM answer
    WHERE inbox.id = answer.item AND state = 'answered'
    RETURNING inbox.id
)"""
# A row can be changed only once by a statement, and an answer that is used is not withdrawn.
_WITHDRAWN = """
withdrawn AS (
    UPDATE {s}.inbox SET state = 'withdrawn' FROM accepted
    WHERE inbox.run = accepted.id AND inbox.state IN ('open', 'answered')
      AND (withdraw OR inbox.id = ANY ({0}::bigint[]) AND inbox.state = 'open')
      AND inbox.id <> ALL ({1}::bigint[])
)"""
# Division by zero undoes the whole transaction: a commit must not use an answer that is not there.
_CHECKED = """
SELECT n, id, 1 / (SELECT CASE WHEN (SELECT count(*) FROM answer) = (SELECT count(*) FROM used)
                               THEN 1 ELSE 0 END) FROM accepted"""
_NO_ANSWER = "22012"

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
        values += part.rows[0] if part.sql is _WITHDRAWN else _columns(part.rows)
    texts = tuple(part.sql for part in parts)
    checkpoint = any(commit.checkpoint is not None for commit in commits)
    return _built(schema, len(rows) == 1, creates, checkpoint, texts), values


@cache
def _built(
    schema: str, single: bool, creates: bool, checkpoint: bool, parts: tuple[str, ...]
) -> TypedStatement:
    """Returns the statement for commits that have these parts; there are few combinations."""
    columns = [*_INPUT, *(_NEW if creates else ())]
    kinds = [column.split()[1] + ("" if single else "[]") for column in columns]
    ctes = _first_parts(columns, single, creates)
    if checkpoint:
        ctes.append(_CHECKPOINTS)
    for part in parts:
        part_kinds = re.findall(r"::(\w+\[\])", part)
        places = [f"${len(kinds) + place}" for place in range(1, len(part_kinds) + 1)]
        kinds += part_kinds
        ctes.append(part.replace("{s}", "{{s}}").format(*places))
    if single and _USED not in parts:
        last = f"{_JOURNAL} RETURNING 1, run"
    else:
        ctes.append(f"journal AS ({_JOURNAL})")
        last = _CHECKED if _USED in parts else "SELECT n, id FROM accepted"
    sql = q.in_schema(f"WITH {', '.join(ctes)} {last}", schema)
    return TypedStatement(sql, encoder_of(kinds))


def _first_parts(columns: Sequence[str], single: bool, creates: bool) -> list[str]:
    """Returns the parts that advance or create runs."""
    if single:
        return [_CREATED_ONE if creates else _ADVANCED_ONE, _ACCEPTED_ONE]
    if creates:
        return [_input(columns), _ADVANCED, _CREATED, _ACCEPTED_OR_CREATED]
    return [_input(columns), _ADVANCED, _ACCEPTED]


def _input(columns: Sequence[str]) -> str:
    named = [column.split() for column in columns]
    arrays = ", ".join(f"${n}::{kind}[]" for n, (_, kind) in enumerate(named, 1))
    names = ", ".join(name for name, _ in named)
    return f"input AS (SELECT * FROM unnest({arrays}) WITH ORDINALITY AS t ({names}, n))"


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
        return (*row, *(None,) * len(_NEW))
    description = bytes.fromhex(text_digest(new.description))
    names = (new.name, new.workflow, new.target, new.definition)
    needs = None if new.needs is None else json.dumps(new.needs)
    return (*row, *names, description, new.created_at, new.owner, needs)


def _parts(commits: Sequence[Commit]) -> list[_Part]:
    numbered = list(enumerate(commits, 1))
    used = [(n, item) for n, c in numbered for item in c.used]
    withdrawn = [item for c in commits for item in c.withdrawn]
    withdraws = bool(withdrawn) or any(c.withdraw for c in commits)
    opened = [
        (n, *item._replace(prompt=_text_value(item.prompt), form=stored_text(item.form)))
        for n, c in numbered
        for item in c.opened
    ]
    return [
        _Part(_BLOBS, list(_blob_rows(numbered))),
        _Part(_LEDGER, list(_ledger_rows(numbered))),
        _Part(_OPENED, opened),
        _Part(_USED, used),
        _Part(_WITHDRAWN, [(withdrawn, [item for _, item in used])] if withdraws else []),
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
