"""Finds out which grants a role lacks for a statement, so that an error can name them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from signoff.guarded_db.verdict import OWN_SCHEMA, Allowed, StatementKind

_TABLES = """
SELECT format('GRANT %s ON %s TO %I', p.name, t.oid::regclass, current_user)
FROM (SELECT to_regclass(name) AS oid, privileges FROM unnest($1::text[], $2::text[])
      AS wanted(name, privileges)) AS t
CROSS JOIN LATERAL unnest(string_to_array(t.privileges, ',')) AS p(name)
WHERE t.oid IS NOT NULL AND NOT has_table_privilege(t.oid, p.name)
ORDER BY 1
"""
_SCHEMAS = """
SELECT format('GRANT USAGE ON SCHEMA %I TO %I', n.nspname, current_user)
FROM pg_namespace AS n WHERE n.nspname = ANY($1::text[])
AND NOT has_schema_privilege(n.oid, 'USAGE') ORDER BY 1
"""
_SEQUENCES = """
SELECT format('GRANT USAGE ON SEQUENCE %s TO %I', s.oid::regclass, current_user)
FROM pg_depend AS d JOIN pg_class AS s ON s.oid = d.objid
WHERE d.refobjid = to_regclass($1) AND d.deptype IN ('a', 'i')
AND CASE WHEN s.relkind = 'S' THEN NOT has_sequence_privilege(s.oid, 'USAGE') ELSE false END
ORDER BY 1
"""

Query = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]


def missing_grants(query: Query, allowed: Allowed | None) -> list[str]:
    """Returns the GRANT statements that a statement needs, or signoff's own records."""
    if allowed is None:
        own = [f"{OWN_SCHEMA}.signoff_steps", f"{OWN_SCHEMA}.signoff_database", "signoff_steps"]
        # Names in a schema that may not be used cannot even be looked up.
        missing = _rows(query, _SCHEMAS, [[OWN_SCHEMA]])
        return missing or _rows(query, _TABLES, [own, ["SELECT,INSERT", "SELECT", "SELECT,INSERT"]])
    names = sorted(allowed.names.tables - {allowed.table})
    wanted = dict.fromkeys(names, "SELECT")
    if allowed.target:
        wanted[allowed.target] = f"SELECT,{_privileges(allowed)}"
    schemas = [allowed.target.split(".")[0]] if "." in allowed.target else []
    if missing := _rows(query, _SCHEMAS, [schemas]):
        return missing
    missing = _rows(query, _TABLES, [list(wanted), list(wanted.values())])
    if allowed.kind is StatementKind.INSERT:
        missing += _rows(query, _SEQUENCES, [allowed.target])
    return missing


def _privileges(allowed: Allowed) -> str:
    if allowed.kind is StatementKind.LOCK:
        return "UPDATE"
    return f"{allowed.kind.upper()},UPDATE" if allowed.replaces else allowed.kind.upper()


def _rows(query: Query, sql: str, params: Sequence[object]) -> list[str]:
    return [str(row[0]) for row in query(sql, params)]
