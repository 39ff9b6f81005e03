"""Every SQL statement the PostgreSQL store sends, by name, except those of a commit.

`{s}` is the store's schema. Every name is qualified with it: a search path would be a setting of
the session, which a pooler does not keep. `{channel}` is where the store's messages go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from typing import Any, overload

from signoff.runtime.store_port import Topic
from signoff.store.queries import replace_surrogates

# Texts as PostgreSQL stores them: it has no NUL character, and models write one now and then.
#
# NUL becomes U+0001 and `0`; so that this can be reversed, U+0001 becomes U+0001 and `1`. JSON
# contains neither, because its writers escape both, so journals and checkpoints need none of this.


_MARK = "\x01"
_STORED = {"\x00": "\x010", _MARK: "\x011"}
_RESTORED = {stored: text for text, stored in _STORED.items()}
_SPECIAL = re.compile("[\x00\x01]")
_MARKED = re.compile("\x01.")


def stored_text(text: str) -> str:
    """Returns a text in a form that the server accepts."""
    if "\x00" in text or _MARK in text:
        return _SPECIAL.sub(lambda match: _STORED[match[0]], text)
    return text


@overload
def restored_text(text: str) -> str: ...
@overload
def restored_text(text: str | None) -> str | None: ...
def restored_text(text: str | None) -> str | None:
    """Returns a text as it was before it was stored."""
    if text is not None and _MARK in text:
        return _MARKED.sub(lambda match: _RESTORED[match[0]], text)
    return text


_SEARCHED = ("name", "workflow", "reason")
RUN = (
    "id, name, workflow, target, definition, status, step, iteration, reason, due_at, "
    "created_at, updated_at, head, fence, owner, cancel, needs"
)
ITEM_COLUMNS = (
    "id, name, effect, kind, prompt, form, digest, step, opened_at, deadline, "
    "state, answer, answered_by, answered_at"
)


def tell(topic: Topic) -> str:
    """Returns the expression that notifies listeners of a topic with the commit."""
    return f"pg_notify('{{channel}}', '{topic}')"


def tell_if(place: str) -> str:
    """Returns the expression that notifies listeners of a topic given as a value, if it is."""
    return f"CASE WHEN {place}::text IS NOT NULL THEN pg_notify('{{channel}}', {place}::text) END"


RUN_BY_NAME = f"SELECT {RUN} FROM {{s}}.runs WHERE name = $1"
RUN_BY_ID = f"SELECT {RUN} FROM {{s}}.runs WHERE id = $1"
LOCK_RUN = f"SELECT {RUN} FROM {{s}}.runs WHERE id = $1 FOR NO KEY UPDATE"
RUNS = f"SELECT {RUN} FROM {{s}}.runs WHERE {{where}} ORDER BY id DESC LIMIT {{limit}}"
RUN_NAMES = "SELECT name FROM {s}.runs ORDER BY id DESC LIMIT 12"
DESCRIPTION = """
SELECT blobs.text FROM {s}.runs JOIN {s}.blobs ON blobs.digest = runs.description
WHERE runs.id = $1
"""
# One statement sees one state of the database, so what a resume gets belongs together.
LOAD = f"""
SELECT checkpoints.seq, checkpoints.state,
       ARRAY(SELECT events FROM {{s}}.journal
             WHERE run = runs.id AND seq > coalesce(checkpoints.seq, 0) ORDER BY seq),
       {RUN.replace("id,", "runs.id,", 1)}
FROM {{s}}.runs LEFT JOIN {{s}}.checkpoints ON run = runs.id WHERE name = $1
"""
JOURNAL = "SELECT seq, events FROM {s}.journal WHERE run = $1 AND seq > $2 ORDER BY seq"
BLOB = "SELECT text FROM {s}.blobs WHERE digest = $1"
ADOPT = """
WITH text AS (
    INSERT INTO {s}.blobs (digest, text) VALUES ($2, $3) ON CONFLICT DO NOTHING
), used AS (
    INSERT INTO {s}.blob_uses (digest, run) VALUES ($2, $1) ON CONFLICT DO NOTHING
)
UPDATE {s}.runs SET definition = $4, description = $2 WHERE id = $1
"""

ITEMS = f"""
SELECT {ITEM_COLUMNS} FROM {{s}}.inbox
WHERE state = ANY ($1::text[]) AND ($2::text IS NULL
                                    OR run = (SELECT id FROM {{s}}.runs WHERE runs.name = $2))
ORDER BY id
"""
WAITING = """
SELECT id, name, step, kind, prompt, opened_at, deadline
FROM {s}.inbox WHERE state = 'open' ORDER BY id
"""
ITEM = f"SELECT {ITEM_COLUMNS} FROM {{s}}.inbox WHERE id = $1"
OPEN_NUMBERS = "SELECT id FROM {s}.inbox WHERE state = 'open' ORDER BY id LIMIT 12"
# The run's row is locked first, as a commit does: a run that is about to wait either sees the
# answer or is seen waiting.
ANSWER = f"""
WITH locked AS (
    SELECT id AS locked_run FROM {{s}}.runs
    WHERE id = (SELECT run FROM {{s}}.inbox WHERE id = $1) FOR NO KEY UPDATE
)
UPDATE {{s}}.inbox SET state = 'answered', answer = $2, answered_by = $3, answered_at = $4
FROM locked WHERE id = $1 AND run = locked_run AND state = 'open' AND digest = $5
RETURNING {ITEM_COLUMNS}, {tell(Topic.WORK)}
"""

LEDGER = """
SELECT step, agent, model, calls, tokens_in, tokens_out, usd, unknown_tokens, unknown_usd,
       tokens_cached, unknown_cached
FROM {s}.ledger WHERE run = $1 ORDER BY step, agent, model
"""
_SUMS = (
    "calls", "tokens_in", "tokens_out", "usd", "unknown_tokens", "unknown_usd", "tokens_cached",
    "unknown_cached",
)  # fmt: skip
_TOTALS = ", ".join(
    f"sum({name})" if name == "usd" else f"least(sum({name}), {(1 << 63) - 1})::bigint"
    for name in _SUMS
)
LEDGER_TOTALS = f"""
SELECT runs.workflow, agent, model, count(DISTINCT run), {_TOTALS}
FROM {{s}}.ledger JOIN {{s}}.runs ON runs.id = ledger.run
WHERE runs.updated_at >= $1 GROUP BY 1, 2, 3
ORDER BY sum(usd) DESC, sum(tokens_out) DESC, 1, 2, 3
"""
SUMMARIES = """
SELECT run, summary FROM {s}.run_summaries JOIN {s}.runs ON runs.id = run AND runs.head = seq
WHERE version = $1
"""
PUT_SUMMARIES = """
INSERT INTO {s}.run_summaries (run, seq, version, summary)
SELECT run, seq, $4::bigint, summary
FROM unnest($1::bigint[], $2::bigint[], $3::text[]) AS t (run, seq, summary)
ON CONFLICT (run) DO UPDATE
SET seq = excluded.seq, version = excluded.version, summary = excluded.summary
"""
KEEP_LATE = """
INSERT INTO {s}.late (run, effect, attempt, outcome) VALUES ($1, $2, $3, $4)
ON CONFLICT (run, effect, attempt) DO UPDATE SET outcome = excluded.outcome
"""
LATE = "SELECT effect, attempt, outcome FROM {s}.late WHERE run = $1"

DROP_OWNER = "DELETE FROM {s}.owners WHERE id = $1"
DROP_LEASES = f"UPDATE {{s}}.runs SET owner = NULL WHERE owner = $1 RETURNING {tell(Topic.WORK)}"
DROP_WORKER = "DELETE FROM {s}.workers WHERE owner = $1"
CANCELS = "SELECT name, cancel FROM {s}.runs WHERE owner = $1 AND cancel IS NOT NULL"
ASK_CANCEL = f"UPDATE {{s}}.runs SET cancel = $2 WHERE id = $1 RETURNING {tell(Topic.CANCEL)}"

# While texts are deleted, no commit may rely on one of them.
LOCK_BLOBS = "LOCK TABLE {s}.blobs, {s}.blob_uses IN SHARE ROW EXCLUSIVE MODE"
DELETE_BLOBS = """
DELETE FROM {s}.blobs USING {s}.blob_uses AS own
WHERE own.run = $1 AND own.digest = blobs.digest
  AND NOT EXISTS (SELECT 1 FROM {s}.blob_uses AS other
                  WHERE other.digest = own.digest AND other.run <> $1)
"""
_TABLES = ("blob_uses", "journal", "checkpoints", "inbox", "ledger", "late", "run_summaries")
DELETE_RUN = (*(f"DELETE FROM {{s}}.{name} WHERE run = $1" for name in _TABLES),
              "DELETE FROM {s}.runs WHERE id = $1")  # fmt: skip

HEALTH = """
SELECT (SELECT max(version) FROM {s}.schema_migrations),
       (SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
        WHERE relnamespace = $1::regnamespace AND relkind = 'r'),
       extract(epoch FROM clock_timestamp())::float8
"""


def run_conditions(
    status: Sequence[str], due_before: float | None, workflow: str, text: str, before: int | None
) -> tuple[str, list[Any]]:
    """Returns the condition of `RUNS` that selects runs, and its values.

    It has only the parts that apply, because the server plans for what it is sent.
    """
    # `strpos` and not LIKE: a text with a percent sign means itself.
    contains = " OR ".join(f"strpos(lower({each}), $) > 0" for each in _SEARCHED)
    conditions = [
        ("status = ANY ($::text[])", list(map(str, status)), bool(status)),
        ("due_at <= $", due_before, due_before is not None),
        ("workflow = $", replace_surrogates(workflow), bool(workflow)),
        (f"({contains})", stored_text(replace_surrogates(text.lower())), bool(text)),
        ("id < $", before, before is not None),
    ]
    used = [(sql, value) for sql, value, applies in conditions if applies]
    numbered = [sql.replace("$", f"${n}") for n, (sql, _) in enumerate(used, 1)]
    return " AND ".join(numbered) or "true", [value for _, value in used]


@cache
def in_schema(sql: str, schema: str) -> str:
    """Returns a statement for the tables of a schema."""
    return sql.replace("{s}", f'"{schema}"').replace("{channel}", channel_of(schema))


@cache
def channel_of(schema: str) -> str:
    """Returns the channel of a store's messages; the server takes at most 63 characters."""
    return f"signoff_{sha256(schema.encode()).hexdigest()[:16]}"
