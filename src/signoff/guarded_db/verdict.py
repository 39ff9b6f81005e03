"""The guard's verdict on a statement: allowed with limits, or refused with advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, TypeAlias

Dialect: TypeAlias = Literal["sqlite", "postgres"]

Params: TypeAlias = Sequence[object] | Mapping[str, object]
"""Values bound to a statement: by position, or by `:name`."""


OWN_TABLES = "signoff_"
"""The prefix of signoff's own tables, which only signoff writes to."""


OWN_SCHEMA = "signoff"
"""The schema for these tables that an administrator of PostgreSQL sets up."""


def quoted(name: str) -> str:
    """Returns a name in double quotes."""
    return '"' + name.replace('"', '""') + '"'


def quoted_table(name: str) -> str:
    """Returns the name of a table, perhaps after that of its schema, with both in quotes."""
    return ".".join(map(quoted, name.split(".")))


class StatementKind(StrEnum):
    """What an allowed statement does."""

    READ = "read"
    LOCK = "lock"
    """A SELECT ... FOR UPDATE or FOR SHARE: it changes nothing, but needs a writing transaction."""
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True)
class Names:
    """The names of one statement that the connection has to look up; most are in lower case."""

    called: frozenset[str] = frozenset()
    """Followed by parentheses, so most of them are functions."""
    of_rows: frozenset[str] = frozenset()
    """After the name of a table or a subquery, and a dot."""
    of_values: frozenset[str] = frozenset()
    """After any other expression, and a dot."""
    tables: frozenset[str] = frozenset()
    """Tables that are read or changed, without their schemas."""
    sequences: frozenset[str] = frozenset()
    """Sequences whose next number is taken, as the statement names them."""


@dataclass(frozen=True)
class Allowed:
    """A statement that may run, and what it may change."""

    kind: StatementKind
    table: str = ""
    """The only table it may change, in lower case and without its schema; empty for reads."""
    target: str = field(default="", compare=False)
    """That table as the statement names it, with its schema and quotes."""
    scope: str = field(default="", compare=False)
    """The statement without what it returns, in a normalized form; empty for reads."""
    every_row: bool = False
    """Whether its text alone shows that it selects no rows, so that a human has to confirm it."""
    replaces: bool = field(default=False, compare=False)
    """Whether it is an INSERT ... DO UPDATE, which may change rows that exist."""
    names: Names = field(default=Names(), compare=False)


@dataclass(frozen=True)
class Refused:
    """A statement that may not run."""

    what: str
    instead: str

    def __str__(self) -> str:
        """Returns one line: what is refused, and what to use instead."""
        return f"{self.what}; {self.instead}"


Verdict: TypeAlias = Allowed | Refused
