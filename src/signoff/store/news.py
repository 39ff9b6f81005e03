"""Finds what changed in the database since a commit, for pages that are open."""

from __future__ import annotations

import sqlite3

from signoff.runtime.store_port import News, Position, RunId
from signoff.store import queries as q
from signoff.store.rows import run_row


def read_news(db: sqlite3.Connection, after: Position | None) -> News:
    """Returns what was committed after a commit; with None, only how far everything is.

    A journal row gets a number above all others, so whatever has a higher one is newer. That holds
    as long as the row itself exists: once it was deleted, its number may be given out again.
    """
    newest = db.execute(q.NEWEST_COMMIT).fetchone()
    last = (RunId(newest[0]), newest[1]) if newest else None
    others = repr((db.execute(q.RUN_COUNTS).fetchall(), db.execute(q.REQUEST_COUNTS).fetchone()))
    if after is None or after == last:
        return News(last, [], complete=True, others=others)
    place = db.execute(q.COMMIT_PLACE, after).fetchone()
    if place is None:
        return News(last, [], complete=False, others=others)
    rows = [run_row(each) for each in db.execute(q.RUNS_COMMITTED_AFTER, place)]
    return News(last, rows, complete=True, others=others)
