"""The port to the user's database: steps read it and stage changes, which are applied together.

This is the only module of contracts that knows `signoff.guarded_db`, which it loads when a
workflow names a database.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from signoff.contracts.model import Database

Params = Sequence[object] | Mapping[str, object]
"""Values bound to a statement: by position, or by `:name`."""
Row = Mapping[str, Any]

StepKey = tuple[str, str, int, str]
"""The run, step, visit and item whose work was committed."""


class Tables(Protocol):
    """The database as commands and conditions see it; conditions cannot `stage`."""

    def query(self, sql: str, params: Params = ()) -> tuple[Row, ...]:
        """Returns the rows of a SELECT, each by column name."""

    def one(self, sql: str, params: Params = ()) -> Row | None:
        """Returns the first row, or None if there is none."""

    def value(self, sql: str, params: Params = ()) -> Any:
        """Returns the first column of the first row, or None if there is no row."""

    def exists(self, sql: str, params: Params = ()) -> bool:
        """Returns whether there is any row."""

    def stage(self, sql: str, params: Params = ()) -> None:
        """Adds a statement to the step's work.

        A human confirms a DELETE, and a change of every row of a table of ten or more.
        """


Proof = tuple[str, Callable[[Tables], bool], str, bool]
"""A postcondition: its name, the check inside the transaction, the message if it fails, and whether
the check is quick and cannot hang."""


class StepDatabase(Tables, Protocol):
    """The database during one attempt at a step."""

    def view(self) -> Tables:
        """Returns a read-only view."""

    def take(self, statements: Sequence[Sequence[Any]]) -> None:
        """Stages statements from a worker; raises `StepFailed` if one is refused."""

    def committed(self, keys: Sequence[StepKey]) -> list[str | None]:
        """Returns the note of each work that was committed before, else None."""

    def require(self, key: StepKey) -> None:
        """Makes `commit` raise `StoreError` if the database does not have this earlier work."""

    def committed_items(self, key: StepKey) -> Sequence[str]:
        """Returns the items of a step that were committed before."""

    def measure(self) -> list[dict[str, Any]]:
        """Returns the changes that a human has to confirm, with the number of their rows."""

    def commit(
        self,
        proofs: Sequence[Proof],
        key: StepKey,
        note: str,
        confirmed: Sequence[Mapping[str, Any]] = (),
    ) -> str | None:
        """Applies the staged work if every proof holds, else raises `StepFailed`.

        Returns the note in the database: an earlier attempt's if that was committed first. None
        means that nothing was changed, because a change that is not in `confirmed` has to be.
        """

    def close(self) -> None:
        """Ends the attempt: a connection of the program's own pool may be given back."""


class WorkflowDatabase(Protocol):
    """The database of one workflow, shared by its steps."""

    def begin(self) -> StepDatabase:
        """Returns the database for one attempt at a step."""

    def back_up(self, reason: str, *, reuse: bool) -> str:
        """Returns the id of a new backup; `reuse` takes an existing one with the same reason."""


def open_database(database: Database) -> WorkflowDatabase:
    """Returns the database that a definition names; connects when it is first used."""
    from signoff.guarded_db.session import GuardedDatabase

    return GuardedDatabase(
        database.connect or database.url,
        address=database.url,
        backups=database.backups,
        keep=database.keep,
    )


def check_address(url: str) -> Path | None:
    """Returns the path of a SQLite file, None for a server; raises `ConfigError` for others."""
    from signoff.guarded_db.address import read_address

    return read_address(url).path


def query_problem(sql: str, database: Database) -> str:
    """Returns why a condition may not use a query; empty if it may."""
    from signoff.guarded_db.address import read_address
    from signoff.guarded_db.guard import Guard
    from signoff.guarded_db.verdict import Allowed, Dialect, StatementKind

    # Without an address, the database is known when it is used, and checks it then.
    every: tuple[Dialect, ...] = ("sqlite", "postgres")
    dialects = (read_address(database.url).dialect,) if database.url else every
    verdicts = [Guard(dialect).verdict(sql) for dialect in dialects]
    if any(isinstance(each, Allowed) and each.kind is StatementKind.READ for each in verdicts):
        return ""
    refused = verdicts[0]
    return "a condition can only read" if isinstance(refused, Allowed) else str(refused)


def is_backed_up(database: Database) -> bool:
    """Whether a backup is taken before a run first changes a database; a server has its own."""
    return database.backup is not False and check_address(database.url) is not None


def with_absolute_paths(database: Database, folder: Path) -> Database:
    """Returns the database with absolute paths; the address of a server has none."""
    path = check_address(database.url) if database.url else None
    url = database.url if path is None else str(folder / path.expanduser())
    backups = str(folder / database.backups) if database.backups else None
    return replace(database, url=url, backups=backups)
