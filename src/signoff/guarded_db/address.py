"""The address of the user's database: a file, or a PostgreSQL server."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from signoff.errors import ConfigError
from signoff.guarded_db.verdict import Dialect

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
