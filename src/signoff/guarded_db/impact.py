"""What a statement changes: counted by running it, never guessed from its text.

A DELETE, and any statement that changes every row of a table of ten or more, needs a confirmation.
It is confirmed for a number of rows, including those that change in other tables because of
foreign keys and triggers. When it is applied, the rows are counted again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from signoff.guarded_db.ports import Connection, StatementResult
from signoff.guarded_db.verdict import Allowed, Params, StatementKind

SMALL_TABLE = 10
"""Every row of a smaller table can be changed without a confirmation."""


@dataclass(frozen=True)
class Statement:
    """A statement that was checked and will be applied."""

    sql: str
    params: Params
    allowed: Allowed


@dataclass(frozen=True)
class Impact:
    """The rows that a statement changes."""

    statement: str
    values: str
    """The parameters, as text."""
    table: str
    rows: int
    others: int
    """Rows of other tables that change with them, by foreign keys and triggers."""

    @classmethod
    def of(cls, statement: Statement, rows: int, others: int) -> Impact:
        """Returns the impact of a statement, after its rows were counted."""
        params = statement.params
        values = dict(params) if isinstance(params, Mapping) else list(params)
        shown = repr(values) if values else ""
        return cls(statement.sql, shown, statement.allowed.table, rows, others)

    def is_of(self, statement: Statement) -> bool:
        """Whether this is about a statement, with the same values."""
        return replace(Impact.of(statement, 0, 0), rows=self.rows, others=self.others) == self

    def __str__(self) -> str:
        """Returns the number of rows, for messages."""
        others = f", and {_rows(self.others)} of other tables" if self.others else ""
        return f"{_rows(self.rows)} of {self.table}{others}"

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON values."""
        return asdict(self)


def must_confirm(allowed: Allowed) -> bool:
    """Whether a statement needs a confirmation, whatever it changes."""
    return allowed.kind is StatementKind.DELETE or allowed.every_row


def run_checked(db: Connection, statement: Statement) -> tuple[StatementResult, bool]:
    """Runs a statement in an open transaction; returns whether it has to be confirmed."""
    allowed = statement.allowed
    # An INSERT ... DO UPDATE of new rows only also touches every row of a table that was empty.
    is_small = allowed.replaces and _count(db, allowed, SMALL_TABLE) < SMALL_TABLE
    result = db.run(statement.sql, statement.params, allowed)
    if must_confirm(allowed):
        return result, True
    may_be_all = allowed.kind is StatementKind.UPDATE or allowed.replaces
    if not may_be_all or is_small or result.changed < SMALL_TABLE:
        return result, False
    # It is enough to count one row more than were changed, however large the table is.
    return result, _count(db, allowed, result.changed + 1) <= result.changed


def run_counted(db: Connection, statement: Statement) -> tuple[StatementResult, Impact, bool]:
    """Does the same, and counts everything that changes."""
    before = db.changes_so_far()
    result, needs_confirmation = run_checked(db, statement)
    others = max(db.changes_so_far() - before - result.changed, 0)
    return result, Impact.of(statement, result.changed, others), needs_confirmation


def rows_digest(result: StatementResult) -> str:
    """Returns a text that identifies the rows that a statement has returned, in any order."""
    rows = sorted(repr(sorted(row.items())) for row in result.rows)
    return hashlib.sha256("\n".join(rows).encode("utf-8", "surrogatepass")).hexdigest()


def _count(db: Connection, allowed: Allowed, limit: int) -> int:
    some = f"SELECT 1 FROM {allowed.target} LIMIT {int(limit)}"  # noqa: S608 - a checked name
    ((number,),) = db.own(f"SELECT count(*) FROM ({some}) AS found")  # noqa: S608 - as above
    return int(number)


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number} rows"
