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
    psycopg = driver()
    try:
        parts = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error as error:
        raise ConfigError(
            "the database's address cannot be read; write postgresql://user@host/name"
        ) from error
    return f"database {parts.get('dbname', '')} on {parts.get('host') or 'this machine'}"
