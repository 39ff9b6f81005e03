"""What only the PostgreSQL store sends, by name, and how its statements and texts are written.

`{s}` is the store's schema. Every name is qualified with it: a search path would be a setting of
the session, which a pooler does not keep. `{channel}` is where the store's messages go.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import sha256

from signoff.runtime.store_port import Topic
from signoff.store import base

NOW = "extract(epoch FROM clock_timestamp())::float8"

# One statement sees one state of the database, so what a resume gets belongs together.
LOAD = f"""
SELECT checkpoints.seq, checkpoints.state,
       ARRAY(SELECT events FROM {{s}}.journal
             WHERE run = runs.id AND seq > coalesce(checkpoints.seq, 0) ORDER BY seq),
       {base.RUN.replace("id,", "runs.id,", 1)}
FROM {{s}}.runs LEFT JOIN {{s}}.checkpoints ON run = runs.id WHERE name = $1
"""
PUT_TEXT = """
WITH text AS (INSERT INTO {s}.blobs (digest, text) VALUES ($2, $3) ON CONFLICT DO NOTHING)
INSERT INTO {s}.blob_uses (run, digest) VALUES ($1, $2) ON CONFLICT DO NOTHING
"""
# While texts are deleted, no commit may rely on one of them.
LOCK_BLOBS = "LOCK TABLE {s}.blobs, {s}.blob_uses IN SHARE ROW EXCLUSIVE MODE"
DELETE_RUN = (
    """
DELETE FROM {s}.blobs USING {s}.blob_uses AS own
WHERE own.run = $1 AND own.digest = blobs.digest
  AND NOT EXISTS (SELECT 1 FROM {s}.blob_uses AS other
                  WHERE other.digest = own.digest AND other.run <> $1)
""",
    "DELETE FROM {s}.blob_uses WHERE run = $1",
    *base.DELETE_RUN,
)

HEALTH = """
SELECT (SELECT max(version) FROM {s}.schema_migrations),
       (SELECT sum(pg_total_relation_size(oid))::bigint FROM pg_class
        WHERE relnamespace = $1::regnamespace AND relkind = 'r'),
       {now}
"""

_TELL = re.compile(r"\{tell (\w+)\}")
_SUM = re.compile(r"\{sum (\w+)\}")


@cache
def in_schema(sql: str, schema: str) -> str:
    """Returns a statement for the tables of a schema."""
    sql = _TELL.sub(lambda found: f" RETURNING {tell(repr(Topic(found[1]).value))}", sql)
    # A total may be larger than any integer of the database; the largest is what is shown then.
    sql = _SUM.sub(rf"least(sum(\1), {(1 << 63) - 1})::bigint", sql)
    notation = {
        "{lock}": " FOR NO KEY UPDATE", "{position}": "strpos", "{now}": NOW,
        "{s}": f'"{schema}"', "{channel}": channel_of(schema),
    }  # fmt: skip
    for mark, text in notation.items():
        sql = sql.replace(mark, text)
    return sql


def tell(topic: str) -> str:
    """Returns the expression that notifies listeners with the commit of a topic, which is SQL."""
    return f"pg_notify('{{channel}}', {topic})"


@cache
def channel_of(schema: str) -> str:
    """Returns the channel of a store's messages; the server takes at most 63 characters."""
    return f"signoff_{sha256(schema.encode()).hexdigest()[:16]}"
