"""Gives the user's database an id, which its backups contain too.

A path does not identify a database: restoring a backup of another database that once had the
same path would destroy this one.
"""

from __future__ import annotations

import secrets

from signoff.guarded_db.ports import Connection, GuardedTransaction
from signoff.guarded_db.verdict import Dialect

_ANY_TABLE: dict[Dialect, str] = {
    "sqlite": "SELECT 1 FROM sqlite_master LIMIT 1",
    "postgres": """
        SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' LIMIT 1
    """,
}
IDENTITY = "signoff_database"
READ_ID = "SELECT id FROM signoff_database"
CREATE_IDENTITY = "CREATE TABLE {table} (id TEXT NOT NULL PRIMARY KEY)"
_LOCK_NUMBER = 0x516100
"""The server's lock that is held while the id is created."""

NO_ID = ""


def read_id(db: Connection) -> str | None:
    """Returns the database's id, `NO_ID` if it has none yet, and None if it is empty."""
    if not db.own(_ANY_TABLE[db.dialect]):
        return None
    table = db.own_table(IDENTITY)
    rows = db.own(f"SELECT id FROM {table}") if table else []  # noqa: S608 - signoff's own table
    return str(rows[0][0]) if len(rows) == 1 else NO_ID


def ensure_id(db: Connection) -> str:
    """Returns the database's id, and gives it one if it has none."""
    existing = read_id(db)
    if existing:
        return existing
    with GuardedTransaction(db, write=True):
        if db.dialect == "postgres":
            # Without it, two sessions could both create the table, or both insert an id.
            db.own("SELECT pg_advisory_xact_lock(?)", [_LOCK_NUMBER])
        existing = read_id(db)
        if existing:
            # Another process has given it an id a moment ago.
            return existing
        table = db.own_table(IDENTITY)
        if table is None:
            table = IDENTITY
            db.own(CREATE_IDENTITY.format(table=table))
        new = secrets.token_hex(16)
        db.own(f"INSERT INTO {table} (id) VALUES (?)", [new])  # noqa: S608 - as above
        db.commit()
    return new
