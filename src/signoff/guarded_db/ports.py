"""What the client needs of a database: one connection, one transaction at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from signoff.guarded_db.verdict import Allowed, Dialect, Params

Row: TypeAlias = Mapping[str, Any]
"""One row, by column name."""


@dataclass(frozen=True)
class Ran:
    """What a statement did."""

    rows: tuple[Row, ...]
    """What it read or returned."""
    changed: int
    """How many rows it changed."""


class Connection(Protocol):
    """A connection that belongs to one client; the client sees to it that nobody else is in."""

    dialect: Dialect
    place: str
    """What it is connected to, as shown to people; never holds a password."""

    def begin(self, *, write: bool) -> None:
        """Opens a transaction; one that writes has its lock from the start on."""

    def seal(self) -> None:
        """Makes the rest of a writing transaction read-only; it can still be committed."""

    def commit(self) -> None:
        """Ends the transaction, keeping what it did."""

    def rollback(self) -> None:
        """Ends the transaction, if one is open, undoing what it did."""

    def run(self, sql: str, params: Params, allowed: Allowed) -> Ran:
        """Runs a judged statement, held to what it is allowed."""

    def own(self, sql: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Runs a statement of signoff's own; its places for values are written `?`."""

    def interrupt(self) -> None:
        """Breaks off whatever statement is running; may be called from another thread."""

    def close(self) -> None:
        """Closes the connection; what was not committed is undone."""
