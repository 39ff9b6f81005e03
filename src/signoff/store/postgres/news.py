"""What was committed since a position, in the PostgreSQL store.

Transactions become visible in another order than they began in. So a journal row has the number
of its transaction, and a position is a row below which nothing can appear any more: its number is
smaller than that of every transaction that is still open. Rows above it may be reported again,
and none is missed. After a restore into another server, older rows may have numbers from the
future there: they count as old.
"""

from __future__ import annotations

from signoff.runtime.store_port import News, Position, RunId
from signoff.store.postgres import queries as q
from signoff.store.postgres.connection import ServerSession
from signoff.store.rows import run_row

# A transaction that writes has a number, so a snapshot that differs is news.
CHANGES = """
SELECT hashtextextended(pg_current_snapshot()::text, 0),
       (SELECT max(version) FROM {s}.schema_migrations)
"""

_STATE = """
SELECT (SELECT ARRAY[run, seq] FROM {s}.journal
        WHERE txid < pg_snapshot_xmin(pg_current_snapshot())
        ORDER BY txid DESC, run DESC LIMIT 1),
       (SELECT string_agg(status || ' ' || runs, ',' ORDER BY status)
        FROM (SELECT status, count(*) AS runs FROM {s}.runs GROUP BY status) AS counts),
       (SELECT concat_ws(' ', count(*), max(id), sum(id)) FROM {s}.inbox WHERE state = 'open'),
       EXISTS (SELECT 1 FROM {s}.journal WHERE run = $1 AND seq = $2
               AND txid < pg_snapshot_xmax(pg_current_snapshot()))
"""
_COMMITTED_AFTER = f"""
SELECT {q.RUN} FROM {{s}}.runs WHERE id IN (
    SELECT newer.run FROM {{s}}.journal AS newer JOIN {{s}}.journal AS seen
    ON (newer.txid, newer.run) > (seen.txid, seen.run)
       AND newer.txid < pg_snapshot_xmax(pg_current_snapshot())
    WHERE seen.run = $1 AND seen.seq = $2
) ORDER BY id
"""


def read_news(after: Position | None, schema: str, session: ServerSession) -> News:
    """Returns what was committed after a commit; with None, only how far everything is."""
    values = list(after or (0, 0))
    # The position is read first: what is committed in between is then reported twice, not never.
    ((last, runs, requests, known),), rows = session.together(
        (q.in_schema(_STATE, schema), values), (q.in_schema(_COMMITTED_AFTER, schema), values)
    )
    return News(
        (RunId(last[0]), last[1]) if last else None,
        list(map(run_row, rows)),
        complete=after is None or known,
        others=f"{runs}; {requests}",
    )
