"""The SQL of a commit: one statement, made of the parts that the commit needs.

Its first part compares the head and the fence of each run with those the commit was built on, and
advances or creates the runs that match. All other parts write only what belongs to those.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from signoff.runtime.listener_port import Topic
from signoff.store.postgres import queries as q
from signoff.store.postgres.binary_values import encoder_of
from signoff.store.postgres.connection import TypedStatement

COLUMNS = (
    "run bigint", "head bigint", "fence bigint", "status text", "step text", "iteration bigint",
    "reason text", "due_at float8", "at float8", "events text", "leaves boolean",
    "withdraw boolean", "checkpoint text",
)  # fmt: skip
"""What every commit has. `leaves` is whether the run is released at once."""
NEW_COLUMNS = (
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
BLOBS = """
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
LEDGER = """
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
OPENED = """
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
USED = """
answer AS (SELECT * FROM unnest({0}::int[], {1}::bigint[]) AS t (n, item) JOIN accepted USING (n)),
used AS (
    UPDATE {s}.inbox SET state = 'used' FROM answer
    WHERE inbox.id = answer.item AND state = 'answered'
    RETURNING inbox.id
)"""
# Of a single commit: planned in half the time, which counts where a process resumes only one run.
USED_ONE = """
used AS (
    UPDATE {s}.inbox SET state = 'used' FROM accepted
    WHERE inbox.id = ANY ({0}::bigint[]) AND state = 'answered'
    RETURNING cardinality({0}) AS expected
)"""
# A row can be changed only once by a statement, and an answer that is used is not withdrawn.
WITHDRAWN = """
withdrawn AS (
    UPDATE {s}.inbox SET state = 'withdrawn' FROM accepted
    WHERE inbox.run = accepted.id AND inbox.state IN ('open', 'answered')
      AND (withdraw OR inbox.id = ANY ({0}::bigint[]) AND inbox.state = 'open')
      AND inbox.id <> ALL ({1}::bigint[])
)"""
# Division by zero undoes the whole transaction: a commit must not use an answer that is not there.
_CHECKED = """
1 / (SELECT CASE WHEN (SELECT count(*) FROM answer) = (SELECT count(*) FROM used)
                 THEN 1 ELSE 0 END)"""
_CHECKED_ONE = "1 / (SELECT CASE WHEN count(*) = max(expected) THEN 1 ELSE 0 END FROM used)"


class CommitForm(NamedTuple):
    """What decides how a statement looks, besides its optional parts."""

    single: bool
    creates: bool
    checkpoint: bool
    topic: Topic | None
    """The topics to notify when it is committed."""


@cache
def commit_statement(schema: str, form: CommitForm, parts: tuple[str, ...]) -> TypedStatement:
    """Returns the statement for commits that have these parts; there are few combinations."""
    columns = [*COLUMNS, *(NEW_COLUMNS if form.creates else ())]
    kinds = [column.split()[1] + ("" if form.single else "[]") for column in columns]
    ctes = _first_parts(columns, form)
    if form.checkpoint:
        ctes.append(_CHECKPOINTS)
    for part in parts:
        # What follows each place, up to its bracket. The first pattern that a process
        # compiles takes as long as the rest of the statement.
        part_kinds = [rest[: rest.index("]") + 1] for rest in part.split("}::")[1:]]
        places = [f"${len(kinds) + place}" for place in range(1, len(part_kinds) + 1)]
        kinds += part_kinds
        ctes.append(part.replace("{s}", "{{s}}").format(*places))
    checks = {USED: _CHECKED, USED_ONE: _CHECKED_ONE}
    extra = [checks[part] for part in parts if part in checks]
    extra += [q.tell(form.topic)] if form.topic is not None else []
    if form.single:
        last = f"{_JOURNAL} RETURNING {', '.join(['1', 'run', *extra])}"
    else:
        ctes.append(f"journal AS ({_JOURNAL})")
        last = f"SELECT {', '.join(['n', 'id', *extra])} FROM accepted"
    sql = q.in_schema(f"WITH {', '.join(ctes)} {last}", schema)
    return TypedStatement(sql, encoder_of(kinds))


def _first_parts(columns: Sequence[str], form: CommitForm) -> list[str]:
    """Returns the parts that advance or create runs."""
    if form.single:
        return [_CREATED_ONE if form.creates else _ADVANCED_ONE, _ACCEPTED_ONE]
    if form.creates:
        return [_input(columns), _ADVANCED, _CREATED, _ACCEPTED_OR_CREATED]
    return [_input(columns), _ADVANCED, _ACCEPTED]


def _input(columns: Sequence[str]) -> str:
    named = [column.split() for column in columns]
    arrays = ", ".join(f"${n}::{kind}[]" for n, (_, kind) in enumerate(named, 1))
    names = ", ".join(name for name, _ in named)
    return f"input AS (SELECT * FROM unnest({arrays}) WITH ORDINALITY AS t ({names}, n))"
