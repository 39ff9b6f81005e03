"""The guarded way to the user's own database: what steps and conditions are given."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

from signoff.errors import NotAllowed, UsageError
from signoff.guarded_db import staging
from signoff.guarded_db.address import Address, read_address
from signoff.guarded_db.confirmations import Confirmations, DeleteConfirmation, MonotonicClock
from signoff.guarded_db.guard import Guard
from signoff.guarded_db.ports import Connection, Ran, Row
from signoff.guarded_db.postconditions import CONDITION_SECONDS, Postcondition
from signoff.guarded_db.staging import Applied, Marker, Statement
from signoff.guarded_db.verdict import Allowed, Params, StatementKind
from signoff.guarded_db.view import ReadOnlyView


class SafeDatabaseClient:
    """Reads and changes a database by judged statements only.

    May be shared by threads: statements and transactions take turns on its one connection.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        functions: Iterable[str] = (),
        clock: MonotonicClock = time,
    ) -> None:
        self._db = connection
        self._guard = Guard(connection.dialect, functions=functions)
        self._confirmations = Confirmations(clock)
        self._turn = threading.RLock()

    @classmethod
    def open(
        cls,
        address: str | Path,
        *,
        functions: Iterable[str] = (),
        clock: MonotonicClock = time,
        patience: float = 5.0,
    ) -> Self:
        """Connects to a SQLite file or a `postgresql://` address.

        `functions` are further functions that statements may call, beside those that are known
        only to compute; `patience` is how many seconds to wait for somebody else's lock.
        """
        own = frozenset(functions)
        connection = connect(read_address(address), functions=own, patience=patience)
        return cls(connection, functions=own, clock=clock)

    def query(self, sql: str, params: Params = ()) -> tuple[Row, ...]:
        """Returns the rows a SELECT gives, each by column name."""
        self._reading(sql)
        with self._transaction(write=False):
            return self._db.run(sql, params, Allowed(StatementKind.READ)).rows

    def execute(self, sql: str, params: Params = (), *, confirm: object = None) -> Ran:
        """Runs one statement at once, in a transaction of its own.

        A DELETE needs `confirm=`, the token from `get_delete_confirmation()`.
        """
        statement = self._statement(sql, params, confirm)
        with self._transaction(write=statement.allowed.kind is not StatementKind.READ):
            return self._db.run(sql, params, statement.allowed)

    def get_delete_confirmation(
        self, table: str, where: str, params: Params = ()
    ) -> DeleteConfirmation:
        """Returns a token for deleting these rows: good once, for 30 seconds, for nothing else."""
        allowed = self._deletion(table, where)
        counted = f"SELECT count(*) AS rows FROM {table} WHERE {where}"  # noqa: S608 - judged below
        rows = int(self.query(counted, params)[0]["rows"])
        token = self._confirmations.issue(allowed.scope, params)
        return DeleteConfirmation(token, table, where, rows)

    def delete(self, table: str, where: str, params: Params = (), *, confirm: object = None) -> int:
        """Deletes the rows a token was given for; returns how many there were."""
        self._deletion(table, where)
        return self.execute(_delete(table, where), params, confirm=confirm).changed

    def drop_table(self, table: str) -> NoReturn:
        """Always refuses."""
        raise NotAllowed(f"DROP TABLE {table} is refused; drop tables in a numbered migration")

    def truncate_table(self, table: str) -> NoReturn:
        """Always refuses."""
        raise NotAllowed(
            f"TRUNCATE {table} is refused; use delete() with a condition and a confirmation"
        )

    def delete_database(self) -> NoReturn:
        """Always refuses."""
        raise NotAllowed("a workflow cannot delete its database; a person can, outside of it")

    def staged(self) -> Staged:
        """Returns an empty collection of statements, for one step to fill and apply."""
        return Staged(self)

    def read_only(self) -> ReadOnlyView:
        """Returns a view for conditions, through which nothing can be changed."""
        return ReadOnlyView(self.query)

    def done(self, marker: Marker) -> bool:
        """Tells whether a step's work was committed, by this process or an earlier one."""
        return self.noted(marker) is not None

    def noted(self, marker: Marker) -> str | None:
        """Returns what was noted when a step's work was committed; None when it was not."""
        with self._transaction(write=False):
            return staging.noted(self._db, marker)

    def close(self) -> None:
        """Closes the connection; what was not committed is undone."""
        with self._turn:
            self._db.close()

    def __enter__(self) -> Self:
        """Gives the client, to be closed at the end of the block."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the client."""
        self.close()

    def _statement(self, sql: str, params: Params, confirm: object) -> Statement:
        allowed = self._guard.check(sql)
        if allowed.kind is StatementKind.DELETE:
            token = None if confirm is None else str(confirm)
            self._confirmations.redeem(token, allowed.scope, params)
        return Statement(sql, params, allowed)

    def _reading(self, sql: str) -> Allowed:
        allowed = self._guard.check(sql)
        if allowed.kind is not StatementKind.READ:
            raise NotAllowed(f"{allowed.kind.upper()} is refused here; this only reads")
        return allowed

    def _deletion(self, table: str, where: str) -> Allowed:
        allowed = self._guard.check(_delete(table, where))
        if allowed.kind is not StatementKind.DELETE or not allowed.scope:
            raise UsageError(f"{table!r} is not the name of a table")
        return allowed

    def _apply(
        self,
        statements: Sequence[Statement],
        postconditions: Sequence[Postcondition],
        marker: Marker,
        seconds: float,
        note: str,
    ) -> Applied:
        def reader(sql: str, params: Params) -> tuple[Row, ...]:
            return self._db.run(sql, params, self._reading(sql)).rows

        with self._turn:
            return staging.apply(
                self._db, reader, statements, postconditions, marker, seconds=seconds, note=note
            )

    @contextmanager
    def _transaction(self, *, write: bool) -> Iterator[None]:
        with self._turn:
            self._db.begin(write=write)
            try:
                yield
                self._db.commit()
            except BaseException:
                self._db.rollback()
                raise


class Staged:
    """The statements of one step: judged when they are added, run when they are applied."""

    def __init__(self, client: SafeDatabaseClient) -> None:
        self._client = client
        self._statements: list[Statement] = []

    def stage(self, sql: str, params: Params = (), *, confirm: object = None) -> None:
        """Adds a statement; one that is not allowed is refused here, before anything is done."""
        statement = self._client._statement(sql, params, confirm)
        if statement.allowed.kind is StatementKind.READ:
            raise UsageError("a staged statement changes something; read with query() instead")
        self._statements.append(statement)

    def apply(
        self,
        postconditions: Sequence[Postcondition],
        *,
        marker: tuple[str, str, int] | Marker,
        seconds: float = CONDITION_SECONDS,
        note: str = "",
        by: SafeDatabaseClient | None = None,
    ) -> Applied:
        """Applies all in one transaction that is kept only when every postcondition holds.

        A marker that is there already means that it was done: nothing is done again. The
        note is kept with the marker. `by` is another client, for the transaction itself.
        """
        whole, client = Marker(*marker), by or self._client
        return client._apply(self._statements, postconditions, whole, seconds, note)

    def __len__(self) -> int:
        """Returns how many statements wait."""
        return len(self._statements)


def connect(
    address: Address, *, functions: Iterable[str] = (), patience: float = 5.0
) -> Connection:
    """Opens a connection of the kind the address asks for."""
    if address.path is not None:
        from signoff.guarded_db.sqlite import SqliteConnection

        return SqliteConnection(address.path, functions=functions, patience=patience)
    from signoff.guarded_db.postgres import PostgresConnection

    return PostgresConnection(address.url, patience=patience)


def _delete(table: str, where: str) -> str:
    return f"DELETE FROM {table} WHERE {where}"  # noqa: S608 - judged like any other statement
