"""The SQL with which the owner of a PostgreSQL database sets it up for workflows.

Signoff's own tables get a schema of their own, and the role of the workflows gets rights on rows
only. Nothing here is executed by signoff.
"""

from __future__ import annotations

from collections.abc import Sequence

from signoff.guarded_db.identity import CREATE_IDENTITY, IDENTITY
from signoff.guarded_db.staging import STEPS, STEPS_TABLE
from signoff.guarded_db.verdict import OWN_SCHEMA, quoted


def setup_sql(role: str, tables: Sequence[str] = (), schema: str = "public") -> str:
    """Returns the statements for a role that may change rows of these tables, or of all."""
    steps, identity = f"{OWN_SCHEMA}.{STEPS}", f"{OWN_SCHEMA}.{IDENTITY}"
    user, home = quoted(role), quoted(schema)
    rows = "SELECT, INSERT, UPDATE, DELETE"
    names = ", ".join(f"{home}.{quoted(table)}" for table in tables)
    target = names or f"ALL TABLES IN SCHEMA {home}"
    create_identity = CREATE_IDENTITY.replace("TABLE", "TABLE IF NOT EXISTS")
    lines = [
        "BEGIN;",
        "",
        "-- signoff's own records: which steps are done, and the id that backups contain",
        f"CREATE SCHEMA IF NOT EXISTS {OWN_SCHEMA};",
        f"{STEPS_TABLE.format(table=steps).strip()};",
        f"{create_identity.format(table=identity)};",
        f"INSERT INTO {identity} (id)",
        "    SELECT md5(random()::text || clock_timestamp()::text)",
        f"    WHERE NOT EXISTS (SELECT 1 FROM {identity});",  # noqa: S608 - it is only shown
        "",
        f"GRANT USAGE ON SCHEMA {OWN_SCHEMA} TO {user};",
        f"GRANT SELECT, INSERT ON {steps} TO {user};",
        f"GRANT SELECT ON {identity} TO {user};",
        "",
        "-- the tables of the workflows: rows only, no changes of the schema",
        f"GRANT USAGE ON SCHEMA {home} TO {user};",
        f"GRANT {rows} ON {target} TO {user};",
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {home} TO {user};",
        "",
        "COMMIT;",
    ]
    return "\n".join(lines) + "\n"
