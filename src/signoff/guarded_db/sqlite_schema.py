"""Finds out which tables SQLite changes by itself when a statement changes a table.

SQLite asks the authorizer about these changes as if the statement made them. So it has to know
which ones follow from the schema: the tables behind search indexes, and rows that change because
of a foreign key.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

_SHADOWS = "SELECT name FROM pragma_table_list WHERE type = 'shadow'"
_VIRTUAL = "SELECT name FROM pragma_table_list WHERE type = 'virtual' AND schema = 'main'"
_ACTIONS = """
SELECT f."table", m.name FROM sqlite_master AS m JOIN pragma_foreign_key_list(m.name) AS f
WHERE m.type = 'table' AND NOT (
    f.on_update IN ('NO ACTION', 'RESTRICT') AND f.on_delete IN ('NO ACTION', 'RESTRICT'))
"""
_TRIGGERED = "SELECT tbl_name FROM sqlite_master WHERE type = 'trigger'"


@dataclass(frozen=True)
class Consequences:
    """Which tables change together with others."""

    shadows: frozenset[str]
    """Tables behind search indexes."""
    virtual: frozenset[str]
    """Search indexes and other tables that are implemented by code."""
    children: Mapping[str, frozenset[str]]
    """For each table, those with foreign keys that change with it."""
    triggered: frozenset[str]
    """Tables with triggers, which may change any other table and its children."""

    @cached_property
    def indexes(self) -> frozenset[str]:
        """The virtual tables, in lower case."""
        return frozenset(name.lower() for name in self.virtual)

    def of(self, table: str) -> frozenset[str]:
        """Returns the tables that may change because this one does."""
        affected: set[str] = set()
        pending = [table]
        while pending:
            new = self.children.get(pending.pop(), frozenset()) - affected
            affected |= new
            pending += new
        if self.triggered & {table, *affected}:
            affected.update(*self.children.values())
        return frozenset(affected)


def consequences(db: sqlite3.Connection) -> Consequences:
    """Reads the schema."""
    children: dict[str, frozenset[str]] = {}
    for parent, child in db.execute(_ACTIONS).fetchall():
        known = children.get(parent.lower(), frozenset())
        children[parent.lower()] = known | {child.lower()}
    return Consequences(
        shadows=frozenset(name.lower() for (name,) in db.execute(_SHADOWS).fetchall()),
        virtual=frozenset(name for (name,) in db.execute(_VIRTUAL).fetchall()),
        children=children,
        triggered=frozenset(name.lower() for (name,) in db.execute(_TRIGGERED).fetchall()),
    )
