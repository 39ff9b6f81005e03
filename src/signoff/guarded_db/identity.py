"""Gives the user's database a name of its own, which its backups carry along.

A path says where a database lies, not which one it is; restoring a backup of another database
that once had the same path would destroy this one.
"""

from __future__ import annotations

import secrets

from signoff.errors import StoreError
from signoff.guarded_db.ports import Connection
from signoff.guarded_db.verdict import Dialect

_THERE: dict[Dialect, str] = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE name = 'signoff_database'",
    "postgres": "SELECT 1 WHERE to_regclass('signoff_database') IS NOT NULL",
}
_ANYTHING: dict[Dialect, str] = {
    "sqlite": "SELECT 1 FROM sqlite_master LIMIT 1",
    "postgres": """
        SELECT 1 FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
        WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema' LIMIT 1
    """,
}
READ = "SELECT id FROM signoff_database"
_CREATE = "CREATE TABLE signoff_database (id TEXT NOT NULL PRIMARY KEY)"
_NAME = "INSERT INTO signoff_database (id) VALUES (?)"


UNNAMED = ""


def identity(db: Connection) -> str | None:
    """Returns the database's name, `UNNAMED` when it was given none, None when it is empty."""
    if not db.own(_ANYTHING[db.dialect]):
        return None
    if not db.own(_THERE[db.dialect]):
        return UNNAMED
    rows = db.own(READ)
    return str(rows[0][0]) if len(rows) == 1 else UNNAMED


def identify(db: Connection) -> str:
    """Returns the database's name, giving it one when it has none."""
    known = identity(db)
    if known:
        return known
    name = secrets.token_hex(16)
    db.begin(write=True)
    try:
        if not db.own(_THERE[db.dialect]):
            db.own(_CREATE)
        db.own(_NAME, [name])
        db.commit()
    except StoreError:
        db.rollback()
        # Somebody else may have named it a moment ago.
        earlier = identity(db)
        if not earlier:
            raise
        return earlier
    except BaseException:
        db.rollback()
        raise
    return name
