"""The guard's verdict on a statement: allowed with limits, or refused with advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

Dialect: TypeAlias = Literal["sqlite", "postgres"]

Params: TypeAlias = Sequence[object] | Mapping[str, object]
"""Values bound to a statement: by position, or by `:name`."""


OWN_TABLES = "signoff_"
"""The prefix of signoff's own tables, which only signoff writes to."""


class StatementKind(StrEnum):
    """What an allowed statement does."""

    READ = "read"
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True)
class Allowed:
    """A statement that may run, and what it may change."""

    kind: StatementKind
    table: str = ""
    """The only table it may change, in lower case and without its schema; empty for reads."""
    scope: str = ""
    """The deleted rows, as a normalized statement; empty for other kinds."""


@dataclass(frozen=True)
class Refused:
    """A statement that may not run."""

    what: str
    instead: str

    def __str__(self) -> str:
        """Returns one line: what is refused, and what to use instead."""
        return f"{self.what}; {self.instead}"


Verdict: TypeAlias = Allowed | Refused
