"""Asks a PostgreSQL server what a statement would do, before it runs.

The server explains a change: its plan must change the allowed table and no other. The server's
list of functions says which names in a statement call a function of the project. Nothing is
remembered: the schema may change between two statements.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from signoff.errors import NotAllowed
from signoff.guarded_db.functions import ALLOWED
from signoff.guarded_db.verdict import Allowed, StatementKind

Query: TypeAlias = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]

_HARMLESS = ALLOWED["postgres"] - {"nextval"}
_CALLS = """
WITH names AS (
    SELECT kind, array_agg(lower(name::name::text COLLATE "C")) AS "all"
    FROM (SELECT 1 AS kind, unnest($1::text[]) AS name
          UNION ALL SELECT 2, unnest($2::text[])
          UNION ALL SELECT 3, unnest($3::text[])) AS found
    GROUP BY kind
)
SELECT DISTINCT n.nspname || '.' || p.proname FROM pg_proc AS p
JOIN pg_namespace AS n ON n.oid = p.pronamespace
CROSS JOIN LATERAL (SELECT lower(p.proname::text COLLATE "C") AS name) AS folded
WHERE pg_function_is_visible(p.oid) AND (
    (folded.name = ANY((SELECT "all" FROM names WHERE kind = 1)::text[])
     AND n.nspname <> 'pg_catalog' AND NOT EXISTS (
        SELECT 1 FROM pg_depend AS d
        WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'))
    OR (p.pronargs >= 1 AND p.pronargs - p.pronargdefaults <= 1 AND (
        (folded.name = ANY((SELECT "all" FROM names WHERE kind = 2)::text[])
         AND n.nspname <> 'pg_catalog' AND EXISTS (
            SELECT 1 FROM pg_type AS t
            WHERE t.oid = p.proargtypes[0] AND t.typtype IN ('c', 'p', 'd')))
        OR (folded.name = ANY((SELECT "all" FROM names WHERE kind = 3)::text[])
            AND NOT (n.nspname = 'pg_catalog' AND p.provolatile = 'i')))))
"""
"""The functions that a statement calls: the project's own by the name of a harmless one, one with
a row as its argument as `row.f`, and any other one as `value.f`. Immutable functions of
PostgreSQL have no side effects. Functions of extensions are on the list by their names. The server
cuts names off and folds them as it does when it looks for a function."""


_OTHER_SEQUENCES = """
SELECT name FROM unnest($1::text[]) AS named (name)
WHERE NOT EXISTS (
    SELECT 1 FROM pg_depend AS d LEFT JOIN pg_attrdef AS a
        ON d.classid = 'pg_attrdef'::regclass AND a.oid = d.objid
    WHERE (d.classid = 'pg_class'::regclass AND d.objid = to_regclass(name)
           AND d.refclassid = 'pg_class'::regclass AND d.refobjid = to_regclass($2))
       OR (a.adrelid = to_regclass($2) AND d.refclassid = 'pg_class'::regclass
           AND d.refobjid = to_regclass(name)))
"""
"""Those that neither belong to a column of the table nor are used by the default of one."""


def check_change(
    sql: str, values: Sequence[object], allowed: Allowed, own: frozenset[str], query: Query
) -> None:
    """Raises `NotAllowed` if a statement would do anything but what it is allowed to."""
    _check_sequences(allowed, query)
    check_calls(allowed, own, query)
    _check_plan(query(f"EXPLAIN (FORMAT JSON, COSTS OFF) {sql}", values), allowed)


def check_calls(allowed: Allowed, own: frozenset[str], query: Query) -> None:
    """Raises `NotAllowed` if a statement calls a function that it may not call.

    `own` are functions that the project allows, in lower case.
    """
    names = allowed.names
    of_rows = {name for name in names.of_rows if name.lower() not in own}
    of_values = {name for name in names.of_values if name.lower() not in own}
    harmless = {name for name in of_values if name.lower() in _HARMLESS}
    # The project may have a function by the name of a harmless one.
    called = (names.called - own) | harmless
    of_values -= harmless
    if not (called or of_rows or of_values):
        return
    found = query(_CALLS, [sorted(called), sorted(of_rows), sorted(of_values)])
    if found:
        function = min(str(name) for (name,) in found)
        raise NotAllowed(
            f"the statement calls the function {function}, which is not on the list of "
            "functions without side effects; leave it out, or add it to the guard's functions"
        )


def _check_sequences(allowed: Allowed, query: Query) -> None:
    """Raises `NotAllowed` for a number of another table's sequence: no rollback gives it back."""
    if not allowed.names.sequences:
        return
    if found := query(_OTHER_SEQUENCES, [sorted(allowed.names.sequences), allowed.target]):
        raise NotAllowed(
            f"{min(str(name) for (name,) in found)} is not a sequence of {allowed.table}; "
            "nextval takes numbers for the table of the INSERT only"
        )


def _check_plan(plan: object, allowed: Allowed) -> None:
    changes = set(_changes(plan))
    locks = allowed.kind is StatementKind.LOCK
    if changes != (set() if locks else {(allowed.kind.value, allowed.table)}):
        planned = ", ".join(sorted(" ".join(change) for change in changes)) or "nothing"
        raise NotAllowed(
            f"the server would do something else ({planned}); use a plain statement on one "
            "table, without rules or views"
        )


def _changes(node: object) -> Iterator[tuple[str, str]]:
    """Yields each change in a plan: the operation and the table."""
    if isinstance(node, str):
        yield from _changes(json.loads(node))
    elif isinstance(node, Mapping):
        if node.get("Node Type") == "ModifyTable":
            table = node.get("Relation Name") or node.get("Alias") or "?"
            yield str(node.get("Operation", "?")).lower(), str(table).lower()
        yield from _changes(list(node.values()))
    elif isinstance(node, list | tuple):
        for part in node:
            if not isinstance(part, str):
                yield from _changes(part)
