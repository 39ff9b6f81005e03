"""Creates the tables of a store, and brings older ones to the current schema.

Numbered migrations, applied in one transaction under an advisory lock, so of many workers that
start at once one applies them. A new schema is created when it is first opened. An older one is
changed only when an administrator asks for it: the server has no copy of the data, and other
workers may still run the previous version.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib import resources

from signoff.core.errors import StoreError, StoreTooNew
from signoff.core.remedies import SetUpStore
from signoff.store.connection import Migration, read_migrations
from signoff.store.databases import driver
from signoff.store.postgres.connection import RIGHTS, ServerAddress, ServerSession
from signoff.store.postgres.queries import in_schema

LATEST = 1
"""The newest migration's number, here so that opening a current schema reads no SQL files."""

_VERSION = "SELECT coalesce(max(version), 0) FROM {s}.schema_migrations"
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended($1, 20261117))"
_TRACKING_TABLE = """
CREATE TABLE IF NOT EXISTS {s}.schema_migrations (
    version bigint PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now()
)
"""


def shipped_migrations() -> list[Migration]:
    """Returns the migrations this version ships, in order."""
    return read_migrations(resources.files("signoff.store.postgres").joinpath("migrations"))


def check_schema(session: ServerSession, address: ServerAddress) -> None:
    """Creates the tables where there are none; raises if they are of another version."""
    version = refuse_newer(session, address)
    if version == LATEST:
        return
    if version:
        raise StoreError(
            f"the tables in schema {address.schema} of {address.label} have version {version}, and "
            f"this signoff needs {LATEST}; back them up, stop the workers of the older version, "
            "then upgrade them",
            remedy=SetUpStore(),
        )
    migrate(session, address)


def refuse_newer(session: ServerSession, address: ServerAddress) -> int:
    """Returns the version of the tables; raises `StoreTooNew` if this program is older."""
    version = schema_version(session)
    check_version(version, address)
    return version


def check_version(version: int, address: ServerAddress) -> None:
    """Raises `StoreTooNew` if the tables have a version that this program does not know."""
    if version > LATEST:
        raise StoreTooNew(
            f"the tables in schema {address.schema} of {address.label} were written by a newer "
            f"signoff (version {version}; this one has {LATEST}); upgrade signoff"
        )


def schema_version(session: ServerSession) -> int:
    """Returns the number of the last migration that was applied; 0 if there are no tables."""
    errors = driver().errors
    with suppress(errors.UndefinedTable, errors.InvalidSchemaName):
        ((version,),) = session.rows(_VERSION)
        return int(version)
    return 0


def migrate(
    session: ServerSession, address: ServerAddress, migrations: Sequence[Migration] | None = None
) -> None:
    """Applies the missing migrations in one transaction, together with their records.

    A process that opens the schema meanwhile finds all of them applied, or none.
    """
    shipped, schema = shipped_migrations() if migrations is None else migrations, address.schema
    with session.transaction():
        session.rows(_LOCK, [f"signoff {schema}"])
        # Another process may have applied them while this one waited for the lock.
        version = _version_in_transaction(session)
        missing = [each for each in shipped if each.version > version]
        for statement in _preparation(schema) if missing else ():
            session.run(statement)
        for migration in missing:
            for statement in _changes(schema, migration):
                session.run(statement)


def setup_sql(address: ServerAddress, role: str) -> str:
    """Returns what an administrator runs to create or upgrade the tables.

    The role may then change rows. Migrations that were applied before are skipped.
    """
    schema, user = address.schema, '"' + role.replace('"', '""') + '"'
    lines = ["BEGIN;", *(f"{each};" for each in _preparation(schema))]
    for migration in shipped_migrations():
        known = f'SELECT 1 FROM "{schema}".schema_migrations WHERE version = {migration.version}'
        lines += [
            "DO $signoff$ BEGIN",
            f"IF NOT EXISTS ({known}) THEN",
            *(f"{each};" for each in _changes(schema, migration)),
            "END IF;",
            "END $signoff$;",
        ]
    lines += [
        f'GRANT USAGE ON SCHEMA "{schema}" TO {user};',
        f'GRANT {", ".join(RIGHTS)} ON ALL TABLES IN SCHEMA "{schema}" TO {user};',
        "COMMIT;",
    ]
    return "\n".join(lines) + "\n"


def _preparation(schema: str) -> list[str]:
    return [
        f'CREATE SCHEMA IF NOT EXISTS "{schema}"',
        f'SET LOCAL search_path = "{schema}"',
        in_schema(_TRACKING_TABLE, schema).strip(),
    ]


def _changes(schema: str, migration: Migration) -> list[str]:
    """Returns a migration's statements; the last one records that it was applied."""
    number, name = migration.version, migration.name
    record = (
        f"INSERT INTO \"{schema}\".schema_migrations (version, name) VALUES ({number}, '{name}')"
    )
    return [*_split(migration.sql), record]


def _version_in_transaction(session: ServerSession) -> int:
    """Returns the version without an error, which would end the transaction."""
    exists = session.rows("SELECT to_regclass($1)", [f'"{session.schema}".schema_migrations'])
    return schema_version(session) if exists != [(None,)] else 0


def _split(sql: str) -> list[str]:
    """Splits a script, which the protocol takes one statement at a time; none has a `;` inside."""
    lines = [line for line in sql.splitlines() if not line.lstrip().startswith("--")]
    return [each.strip() for each in "\n".join(lines).split(";") if each.strip()]
