"""What the guard says of a statement: allowed as something, or refused with a way out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

Dialect: TypeAlias = Literal["sqlite", "postgres"]

Params: TypeAlias = Sequence[object] | Mapping[str, object]
"""Values bound to a statement: by position, or by `:name`."""


OWN_TABLES = "signoff_"
"""Tables with this beginning are signoff's own records; only signoff writes to them."""


class StatementKind(StrEnum):
    """What an allowed statement does."""

    READ = "read"
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True)
class Allowed:
    """A statement that may run, and what it may touch while it does."""

    kind: StatementKind
    table: str = ""
    """The one table it writes to, in lower case and without its schema; empty for reads."""
    scope: str = ""
    """For a delete: which rows of which table, written one way whatever the spelling was."""


@dataclass(frozen=True)
class Refused:
    """A statement that may not run."""

    what: str
    instead: str

    def __str__(self) -> str:
        """Reads as one line: what is refused, and what to use instead."""
        return f"{self.what}; {self.instead}"


Verdict: TypeAlias = Allowed | Refused
