"""The second line of defense on SQLite: it asks for permission before it does anything.

SQLite calls the authorizer while it compiles a statement, with what the statement really does.
So it does not matter how the text was written or how our parser understood it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import TypeAlias

from signoff.guarded_db.functions import ALLOWED
from signoff.guarded_db.sqlite_schema import Consequences
from signoff.guarded_db.verdict import OWN_TABLES, Allowed, StatementKind

Authorizer: TypeAlias = Callable[[int, str | None, str | None, str | None, str | None], int]

_READS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
_WRITES = {
    StatementKind.READ: frozenset[int](),
    StatementKind.LOCK: frozenset[int](),
    # An INSERT with ON CONFLICT DO UPDATE is both.
    StatementKind.INSERT: frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE}),
    StatementKind.UPDATE: frozenset({sqlite3.SQLITE_UPDATE}),
    StatementKind.DELETE: frozenset({sqlite3.SQLITE_DELETE}),
}
_SEARCH_PRAGMA = ("data_version", None)
"""The PRAGMA that full-text indexes use internally; it changes nothing."""
_BY_FOREIGN_KEYS = frozenset({sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
_CHANGES = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})


def authorizer(
    allowed: Allowed, *, functions: frozenset[str], consequences: Consequences
) -> Authorizer:
    """Returns the authorizer for an allowed statement."""
    dependent = consequences.of(allowed.table)
    # SQLite changes these when a search index changes, by the statement itself or by a trigger.
    changes_indexes = bool(consequences.indexes & {allowed.table}) or bool(
        consequences.triggered & {allowed.table, *dependent}
    )
    inside_indexes = consequences.shadows if changes_indexes else frozenset[str]()
    may_write = bool(allowed.table) and allowed.table not in consequences.shadows

    def answer(
        action: int,
        name: str | None,
        detail: str | None,
        _database: str | None,
        trigger: str | None,
    ) -> int:
        if action in _READS:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            known = (detail or "").lower() in functions
            return sqlite3.SQLITE_OK if known or trigger else sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_PRAGMA and (name, detail) == _SEARCH_PRAGMA:
            return sqlite3.SQLITE_OK
        if action in _CHANGES and may_write and may_change((name or "").lower(), action, trigger):
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    def may_change(table: str, action: int, trigger: str | None) -> bool:
        if table.startswith((OWN_TABLES, "sqlite_")):
            return False
        # Triggers were created by a migration, so its author decided what they do.
        by_trigger = trigger is not None or table in inside_indexes
        by_foreign_key = table in dependent and action in _BY_FOREIGN_KEYS
        by_statement = table == allowed.table and action in _WRITES[allowed.kind]
        return by_trigger or by_foreign_key or by_statement

    return answer


def functions_for(own: frozenset[str]) -> frozenset[str]:
    """Returns the functions that SQLite may call, including those behind operators."""
    return ALLOWED["sqlite"] | own | {"->", "->>"}
