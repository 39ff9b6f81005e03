"""Opens connections: to an address, or by a function of the program that returns one."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeAlias

from signoff.errors import ConfigError
from signoff.guarded_db.address import Address, read_address
from signoff.guarded_db.ports import Connection

Source: TypeAlias = str | Path | Callable[[], Any]
"""An address, or a function that returns a DB-API connection, such as a pool's `getconn`."""


def read_source(source: Source) -> Address | Callable[[], Any]:
    """Returns an address as its parts, and a function as it is."""
    return source if callable(source) else read_address(source)


def connect(
    source: Address | Callable[[], Any], *, functions: Iterable[str] = (), patience: float = 5.0
) -> Connection:
    """Opens a connection to an address, or takes the one that a function returns."""
    if not isinstance(source, Address):
        return _borrow(source(), functions, patience)
    if source.path is not None:
        from signoff.guarded_db.sqlite import SqliteConnection

        return SqliteConnection(source.path, functions=functions, patience=patience)
    from signoff.guarded_db.postgres import PostgresConnection

    return PostgresConnection(source.url, functions=functions, patience=patience)


def _borrow(connection: Any, functions: Iterable[str], patience: float) -> Connection:
    """Returns a guarded connection around one that the program has opened.

    A pool, such as that of SQLAlchemy, returns an object around the driver's connection; closing
    that object gives the connection back.
    """
    inner = getattr(connection, "driver_connection", connection)
    if isinstance(inner, sqlite3.Connection):
        from signoff.guarded_db.sqlite import SqliteConnection

        return SqliteConnection(inner, functions=functions, patience=patience, owner=connection)
    if type(inner).__module__.split(".")[0] == "psycopg":
        from signoff.guarded_db.postgres import PostgresConnection

        return PostgresConnection(inner, functions=functions, patience=patience, owner=connection)
    driver = f"{type(inner).__module__}.{type(inner).__qualname__}"
    raise ConfigError(
        f"the function returned a {driver}; return a connection of sqlite3 or psycopg 3 "
        "(SQLAlchemy: postgresql+psycopg://, and engine.raw_connection)"
    )
