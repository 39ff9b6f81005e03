"""Read access to the database, which is all that conditions get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from signoff.errors import NotAllowed, UsageError
from signoff.guarded_db.ports import Row
from signoff.guarded_db.verdict import Params

Reader: TypeAlias = Callable[[str, Params], tuple[Row, ...]]


class Queries:
    """Queries in several forms."""

    def __init__(self, reader: Reader) -> None:
        self._reader: Reader | None = reader

    def query(self, sql: str, params: Params = ()) -> tuple[Row, ...]:
        """Returns the rows of a SELECT, each by column name."""
        if self._reader is None:
            raise UsageError("this view of the database is closed: its transaction has ended")
        return self._reader(sql, params)

    def one(self, sql: str, params: Params = ()) -> Row | None:
        """Returns the first row, or None if there is none."""
        rows = self.query(sql, params)
        return rows[0] if rows else None

    def value(self, sql: str, params: Params = ()) -> Any:
        """Returns the first column of the first row, or None if there is no row."""
        row = self.one(sql, params)
        return next(iter(row.values())) if row else None

    def exists(self, sql: str, params: Params = ()) -> bool:
        """Returns whether there is any row."""
        return self.one(sql, params) is not None


class ReadOnlyView(Queries):
    """The database as conditions see it: they cannot change anything."""

    def stage(self, sql: str, params: Params = ()) -> None:  # noqa: ARG002  # the same call as a step's
        """Always refuses."""
        raise NotAllowed("conditions can only read; stage changes in the step's command")

    def close(self) -> None:
        """Ends the view, so that an abandoned condition cannot read later states."""
        self._reader = None
