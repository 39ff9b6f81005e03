"""The driver of PostgreSQL, which is an extra, and how messages name a server's database."""

from __future__ import annotations

from typing import Any

from signoff._extras import install_command
from signoff.errors import ConfigError


def driver() -> Any:
    """Returns the psycopg module; raises `ConfigError` if it is not installed."""
    try:
        import psycopg
    except ImportError as error:
        raise ConfigError(
            f"PostgreSQL needs psycopg, which is not installed: {install_command('postgres')}"
        ) from error
    return psycopg


def label_of(url: str) -> str:
    """Returns a description of the database at an address, without its password."""
    parts = _parts(url)
    return f"database {parts.get('dbname', '')} on {parts.get('host') or 'this machine'}"


def user_of(url: str) -> str:
    """Returns the user that an address names; empty if it leaves that to the driver."""
    return str(_parts(url).get("user") or "")


def _parts(url: str) -> dict[str, Any]:
    psycopg = driver()
    try:
        parts: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error as error:
        raise ConfigError(
            "the database's address cannot be read; write postgresql://user@host/name"
        ) from error
    return parts
