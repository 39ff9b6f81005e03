"""The port to a database: its address, and one connection with one transaction at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from signoff.contracts.guarded_db.verdict import Allowed, Dialect, Params
from signoff.core.errors import ConfigError, StoreError

_POSTGRES = re.compile(r"postgres(ql)?://")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)

Row: TypeAlias = Mapping[str, Any]
"""One row, by column name."""

MOST_RESULT_BYTES = 64_000_000
"""A statement whose result would take more memory is refused."""
_VALUE_BYTES = 50
"""What a value takes in memory besides its content."""


class FailedTransactionError(StoreError):
    """A statement of the transaction has failed before, so it cannot be committed."""


def result_too_large() -> StoreError:
    """Returns the error for such a statement."""
    limit = f"{MOST_RESULT_BYTES // 1_000_000} MB"
    return StoreError(f"the result is larger than {limit}; select fewer rows or columns")


class ResultSize:
    """Counts the memory that the rows of a result take, about."""

    def __init__(self) -> None:
        self._bytes = 0

    def add(self, row: Sequence[object]) -> None:
        """Adds a row; raises `StoreError` when the result has become too large."""
        self._bytes += sum(_VALUE_BYTES + _length(value) for value in row)
        if self._bytes > MOST_RESULT_BYTES:
            raise result_too_large()


def _length(value: object) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    return 0 if value is None or isinstance(value, int | float) else len(str(value))


@dataclass(frozen=True)
class StatementResult:
    """The result of a statement."""

    rows: tuple[Row, ...]
    """The rows it read or returned."""
    changed: int
    """The number of rows it changed."""


class Connection(Protocol):
    """A connection that belongs to one client, which uses it in one thread at a time."""

    dialect: Dialect
    label: str
    """What it is connected to, as shown to users; never contains a password."""

    def begin(self, *, write: bool) -> None:
        """Opens a transaction; one that writes locks the database from the start."""

    def seal(self) -> None:
        """Makes the rest of a writing transaction read-only; it can still be committed."""

    def commit(self) -> None:
        """Commits the transaction; raises `FailedTransactionError` if a part of it has failed."""

    def rollback(self) -> None:
        """Rolls the transaction back, if one is open."""

    def run(self, sql: str, params: Params, allowed: Allowed) -> StatementResult:
        """Runs a checked statement, and makes sure that it does only what it is allowed to."""

    def changes_so_far(self) -> int:
        """Returns how many rows were changed, with those changed by foreign keys and triggers."""

    def own(self, sql: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Runs a statement of signoff's own, with `?` for values; it is not checked."""

    def can_return(self, table: str) -> bool:
        """Whether a change of this table can return its rows."""

    def has_table(self, name: str) -> bool:
        """Whether a table exists; its name may follow that of its schema and a dot."""

    def own_table(self, name: str) -> str | None:
        """Returns one of signoff's own tables with its schema; None if there is no such table."""

    def interrupt(self) -> None:
        """Aborts the statement that is running; may be called from another thread."""

    def is_alive(self) -> bool:
        """Whether the connection was not lost; a server is asked."""

    def close(self) -> None:
        """Closes the connection, without committing."""


@contextmanager
def transaction(db: Connection, *, write: bool) -> Iterator[None]:
    """Opens a transaction for a block, which is rolled back unless the block commits it."""
    db.begin(write=write)
    try:
        yield
    finally:
        db.rollback()


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
