"""The system tables that a statement may read: those that describe the schema.

Others expose the server's configuration, its users, or what other sessions do. This is a list of
what is allowed, because each release of PostgreSQL adds views.
"""

from __future__ import annotations

from signoff.guarded_db.verdict import Dialect, Refused

_PREFIXES = ("sqlite_", "pg_")
_SCHEMAS = frozenset({"pg_catalog", "information_schema", "pg_toast"})

_READABLE = frozenset(
    f"pg_{name}"
    for name in """
am attrdef attribute class collation constraint depend description enum index indexes inherits
matviews namespace opclass operator partitioned_table range sequence sequences stat_user_indexes
stat_user_tables statio_user_tables tables trigger type views
""".split()
)
_OPTIONS = frozenset(
    "column_options foreign_data_wrapper_options foreign_server_options foreign_table_options "
    "user_mapping_options routines".split()
)
"""Views of the information schema with passwords in options, or with the source of functions."""

_SQLITE_READABLE = frozenset({"sqlite_master", "sqlite_schema", "sqlite_sequence", "sqlite_stat1"})


def is_system_table(name: str, schema: str) -> bool:
    """Whether a table belongs to the database system, so that no statement may write to it."""
    return name.startswith(_PREFIXES) or schema in _SCHEMAS


def refusal_of_catalog(name: str, schema: str, dialect: Dialect) -> Refused | None:
    """Returns why a system table may not be read; None if it may, or is not one."""
    if dialect == "sqlite":
        hidden = name.startswith("pragma_") or (
            name.startswith("sqlite_") and name not in _SQLITE_READABLE
        )
    elif schema == "information_schema":
        hidden = name in _OPTIONS
    elif schema in ("", "pg_catalog", "pg_toast"):
        hidden = (schema != "" or name.startswith("pg_")) and name not in _READABLE
    else:
        # Tables of the project may be called anything in a schema of their own.
        hidden = schema.startswith("pg_")
    if not hidden:
        return None
    return Refused(
        f"{name} is not a table of the project and is refused",
        "of the system's tables, only those that describe the schema can be read",
    )
