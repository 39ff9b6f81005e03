"""The guard's verdict on a statement: allowed with limits, or refused with advice.

The advice says what to use instead of a statement that is refused.
"""

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


ALLOWED_FIRST_WORDS = frozenset({"select", "with", "values", "table", "insert", "update", "delete"})
"""Statements with another first word are refused without parsing them."""

USE_PLAIN_STATEMENT = "use a plain SELECT, INSERT, UPDATE or DELETE"
USE_UPSERT = "use INSERT ... ON CONFLICT (...) DO UPDATE, which keeps the row"
LEAVE_SEQUENCES = "let the column's default take the next number, and read it with RETURNING"
SEND_ONE_STATEMENT = "send each statement on its own, so that each is checked on its own"

_FIRST_WORDS_BY_ADVICE = {
    "put schema changes into a numbered migration and apply it": "drop alter create rename comment",
    "use DELETE, which has to be confirmed: a human is asked in a run, and a token is needed "
    "elsewhere": "truncate",
    "a step's statements share one transaction that signoff opens and closes": (
        "begin start commit end rollback abort savepoint release lock"
    ),
    "signoff manages the settings of the connection; leave it out": "pragma set reset discard",
    USE_UPSERT: "replace merge upsert",
    "a step uses one database; copy what it needs into a table in a migration": "attach",
    "a step uses one database": "detach",
    "maintenance, such as a backup, is done outside of workflows": "vacuum",
    "read with query() and write with INSERT; SQL cannot access files": "copy",
    "look at plans outside of workflows; EXPLAIN ANALYZE runs what it explains": "explain",
}
_ADVICE = {word: text for text, words in _FIRST_WORDS_BY_ADVICE.items() for word in words.split()}


def refusal_of(word: str) -> Refused:
    """Returns why a statement with this first word is refused, and what to use instead."""
    if not word:
        return Refused("the text contains no statement", USE_PLAIN_STATEMENT)
    return Refused(f"{word.upper()[:40]} is refused", _ADVICE.get(word, USE_PLAIN_STATEMENT))
