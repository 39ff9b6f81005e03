"""The SQL with which the owner of a PostgreSQL database sets it up for workflows.

Signoff's own table gets a schema of its own, and the role of the workflows gets rights on rows
only. Nothing here is executed by signoff.
"""

from __future__ import annotations

from collections.abc import Sequence

from signoff.guarded_db.staging import STEPS, STEPS_TABLE
from signoff.guarded_db.verdict import OWN_SCHEMA, quoted


def setup_sql(role: str, tables: Sequence[str] = (), schema: str = "public") -> str:
    """Returns the statements for a role that may change rows of these tables, or of all."""
    steps = f"{OWN_SCHEMA}.{STEPS}"
    user, home = quoted(role), quoted(schema)
    rows = "SELECT, INSERT, UPDATE, DELETE"
    names = ", ".join(f"{home}.{quoted(table)}" for table in tables)
    target = names or f"ALL TABLES IN SCHEMA {home}"
    lines = [
        "BEGIN;",
        "",
        "-- signoff's own records: which steps are done",
        f"CREATE SCHEMA IF NOT EXISTS {OWN_SCHEMA};",
        f"{STEPS_TABLE.format(table=steps).strip()};",
        "",
        f"GRANT USAGE ON SCHEMA {OWN_SCHEMA} TO {user};",
        f"GRANT SELECT, INSERT ON {steps} TO {user};",
        "",
        "-- the tables of the workflows: rows only, no changes of the schema",
        f"GRANT USAGE ON SCHEMA {home} TO {user};",
        f"GRANT {rows} ON {target} TO {user};",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {home} TO {user};",
        "",
        "COMMIT;",
    ]
    return "\n".join(lines) + "\n"
