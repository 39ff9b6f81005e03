"""The PostgreSQL store as a kind of store: how it is opened, and how its tables are set up."""

from __future__ import annotations

from contextlib import closing

from signoff.postgres_driver import user_of
from signoff.runtime.store_port import StoreKind
from signoff.store.postgres import schema
from signoff.store.postgres.address import read_address
from signoff.store.postgres.connection import ServerConnection, ServerSession
from signoff.store.postgres.store import PostgresStore

DEFAULT_ROLE = "signoff"
"""Gets the rights if neither the administrator nor the address names a role."""


def set_up(url: str) -> int:
    """Creates the tables, or brings those of an older version to this one; returns its number."""
    address = read_address(url)

    def migrate(session: ServerSession) -> int:
        schema.refuse_newer(session, address)
        schema.migrate(session, address)
        return schema.schema_version(session, address.schema)

    with closing(ServerConnection(address)) as server:
        server.open()
        return server.perform(migrate)


def setup_sql(url: str, role: str) -> str:
    """Returns what an administrator runs instead, with grants for a role that changes rows."""
    address = read_address(url)
    return schema.setup_sql(address, role or user_of(address.url) or DEFAULT_ROLE)


KIND = StoreKind(open=PostgresStore, set_up=set_up, setup_sql=setup_sql)
