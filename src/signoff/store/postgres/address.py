"""The address of a PostgreSQL store: a libpq URL, with the schema as one more option."""

from __future__ import annotations

import re
from dataclasses import dataclass

from signoff.errors import ConfigError
from signoff.postgres_driver import label_of

DEFAULT_SCHEMA = "signoff"

_SCHEMA = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")
_OPTION = "schema="


@dataclass(frozen=True, repr=False)
class ServerAddress:
    """Where a store's tables are; it has no repr, because the URL may contain a password."""

    url: str
    """As the driver reads it."""
    schema: str
    label: str
    """The database and its host, for messages."""


def read_address(text: str) -> ServerAddress:
    """Reads `postgresql://user@host/name?schema=signoff`; libpq gets all other options."""
    base, _, query = text.partition("?")
    options = query.split("&") if query else []
    schemas = [each.removeprefix(_OPTION) for each in options if each.startswith(_OPTION)]
    schema = schemas[-1] if schemas else DEFAULT_SCHEMA
    if not _SCHEMA.fullmatch(schema):
        raise ConfigError(
            f"the schema in the database's address is {schema!r}; write lowercase letters, "
            "digits and _, not starting with a digit or pg_"
        )
    others = "&".join(each for each in options if not each.startswith(_OPTION))
    url = f"{base}?{others}" if others else base
    return ServerAddress(url, schema, label_of(url))
