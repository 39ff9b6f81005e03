"""What the role of the workers may do: change rows, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from signoff.errors import StoreError
from signoff.postgres_driver import driver
from signoff.remedies import SetUpStore
from signoff.store.postgres.address import ServerAddress

if TYPE_CHECKING:
    import psycopg

    from signoff.store.postgres.connection import ServerSession

RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE")

_MISSING = """
SELECT format('GRANT USAGE ON SCHEMA %I TO %I', $1::text, current_user)
WHERE NOT has_schema_privilege($1::text, 'USAGE')
UNION ALL
SELECT format('GRANT %s ON ALL TABLES IN SCHEMA %I TO %I',
              string_agg(DISTINCT privilege, ', '), $1::text, current_user)
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace AND nspname = $1::text,
     unnest($2::text[]) AS privilege
WHERE relkind = 'r' AND NOT has_table_privilege(pg_class.oid, privilege)
HAVING count(*) > 0
"""


def check_grants(session: ServerSession, address: ServerAddress) -> None:
    """Raises `StoreError` if the role lacks a right on a table, before a run needs it."""
    if grants := _missing_grants(session, address):
        raise _denied(address, "the role lacks rights", grants)


def denied_error(
    session: ServerSession, address: ServerAddress, error: psycopg.Error
) -> StoreError:
    """Returns the error for a role that may not do what it has to, with the missing grants."""
    grants: list[str] = []
    with suppress(driver().Error):
        grants = _missing_grants(session, address)
    return _denied(address, str(error).splitlines()[0], grants)


def _missing_grants(session: ServerSession, address: ServerAddress) -> list[str]:
    return [grant for (grant,) in session.rows(_MISSING, [address.schema, list(RIGHTS)])]


def _denied(address: ServerAddress, reason: str, grants: Sequence[str]) -> StoreError:
    how = f"; the owner of the tables can run: {'; '.join(grants)}" if grants else ""
    return StoreError(f"{address.label}: {reason}{how}", remedy=SetUpStore())
