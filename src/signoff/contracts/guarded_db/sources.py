"""Opens connections: to the address of a file or a server, or by a function of the program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from signoff.contracts.guarded_db.ports import Connection
from signoff.contracts.guarded_db.verdict import Dialect
from signoff.core.errors import ConfigError

_POSTGRES = re.compile(r"postgres(ql)?://")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)


@dataclass(frozen=True, repr=False)
class Address:
    """A parsed address; it has no repr, because it may contain a password."""

    dialect: Dialect
    path: Path | None = None
    """The file, for SQLite."""
    url: str = ""
    """The server and database, for PostgreSQL."""


def read_address(text: str | Path) -> Address:
    """Reads a path, `sqlite:///path` or `postgresql://user@host/name`."""
    if isinstance(text, Path):
        return Address("sqlite", path=text)
    if _POSTGRES.match(text):
        return Address("postgres", url=text)
    if text.startswith("sqlite:///"):
        return Address("sqlite", path=Path(text.removeprefix("sqlite:///")))
    if _SCHEME.match(text) or not text.strip():
        scheme = text.split("://")[0]
        raise ConfigError(
            f"unsupported kind of database {scheme!r}; "
            "valid: a path, sqlite:///path, postgresql://user@host/name"
        )
    return Address("sqlite", path=Path(text))


Source: TypeAlias = str | Path | Callable[[], Any]
"""An address, or a function that returns a connection: a driver's, or one from a pool."""


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
        from signoff.contracts.guarded_db.sqlite import SqliteConnection

        return SqliteConnection(source.path, functions=functions, patience=patience)
    from signoff.contracts.guarded_db.postgres import PostgresConnection

    return PostgresConnection(source.url, functions=functions, patience=patience)


def _borrow(lent: Any, functions: Iterable[str], patience: float) -> Connection:
    """Returns a guarded connection around one that the program has lent."""
    import sqlite3

    inner, give_back = _unwrap(lent)
    if isinstance(inner, sqlite3.Connection):
        from signoff.contracts.guarded_db.sqlite import SqliteConnection

        return SqliteConnection(inner, functions=functions, patience=patience, give_back=give_back)
    if type(inner).__module__.split(".")[0] == "psycopg":
        from signoff.contracts.guarded_db.postgres import PostgresConnection

        return PostgresConnection(
            inner, functions=functions, patience=patience, give_back=give_back
        )
    give_back()
    driver = f"{type(inner).__module__}.{type(inner).__qualname__}"
    raise ConfigError(
        f"the function returned a {driver}; return a connection of sqlite3 or psycopg 3, or one "
        "from a pool of these (SQLAlchemy: postgresql+psycopg://, and engine.connect)"
    )


def _unwrap(lent: Any) -> tuple[Any, Callable[[], Any]]:
    """Returns the driver's connection in what a function returned, and how to give it back."""
    pool: Any = getattr(lent, "_pool", None)
    if hasattr(pool, "putconn"):
        # From `getconn` of a pool of psycopg, which would miss a connection that is just closed.
        return lent, partial(pool.putconn, lent)
    if isinstance(lent, AbstractContextManager) and not hasattr(lent, "close"):
        # From `connection` of a pool of psycopg, or `begin` of SQLAlchemy.
        inner, _ = _unwrap(lent.__enter__())
        return inner, partial(lent.__exit__, None, None, None)
    # SQLAlchemy's pool has an object around the driver's connection, and `connect` one around that.
    pooled = lent if hasattr(lent, "driver_connection") else getattr(lent, "connection", lent)
    return getattr(pooled, "driver_connection", lent), getattr(lent, "close", lambda: None)
