"""The client for the user's own database, which checks every statement."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, Protocol, Self

from signoff.errors import NotAllowed, UsageError
from signoff.guarded_db import staging
from signoff.guarded_db.guard import Guard
from signoff.guarded_db.impact import (
    Impact,
    Statement,
    must_confirm,
    rows_digest,
    run_checked,
    run_counted,
)
from signoff.guarded_db.ports import Connection, Row, StatementResult, transaction
from signoff.guarded_db.postconditions import CONDITION_SECONDS, Postcondition, Reader, Tables
from signoff.guarded_db.sources import Source, connect, read_source
from signoff.guarded_db.staging import Applied, Marker, RolledBack, StepWork
from signoff.guarded_db.verdict import Allowed, Params, StatementKind, quoted_table

# Tokens that allow one particular change, once, for a short time, of the rows that were seen.


VALID_SECONDS = 30.0
MOST_OPEN = 1_000
"""Unused tokens that are stored; the oldest are dropped first."""


class MonotonicClock(Protocol):
    """A source of time, such as the module `time`."""

    def monotonic(self) -> float:
        """Returns seconds that never decrease."""


@dataclass(frozen=True)
class SeenRows:
    """The rows that a statement changed when its confirmation was requested."""

    rows: int
    others: int
    """Rows of other tables that change with them."""
    digest: str = ""
    """Identifies the rows; empty if the database cannot return them."""


@dataclass(frozen=True)
class ChangeConfirmation:
    """The rows that will change, and the token that allows it."""

    token: str
    table: str
    rows: int
    """The number of rows that match now."""
    others: int
    """Rows of other tables that change with them, by foreign keys and triggers."""

    def __str__(self) -> str:
        """Returns the token, so that this object can be passed as `confirm=`."""
        return self.token


class Confirmations:
    """Issues tokens and redeems them, each for one change."""

    def __init__(self, clock: MonotonicClock) -> None:
        self._clock = clock
        self._open: dict[str, tuple[str, float, SeenRows]] = {}

    def issue(self, scope: str, params: Params, seen: SeenRows) -> str:
        """Returns a new token for one change of these rows."""
        while len(self._open) >= MOST_OPEN:
            del self._open[next(iter(self._open))]
        token = secrets.token_urlsafe(18)
        until = self._clock.monotonic() + VALID_SECONDS
        self._open[token] = (_digest(scope, params), until, seen)
        return token

    def redeem(self, token: str, scope: str, params: Params) -> SeenRows:
        """Uses a token up; raises `NotAllowed` if it is wrong or too old."""
        digest, until, seen = self._open.pop(token, ("", 0.0, None))
        if seen is None:
            raise NotAllowed("the token is unknown or was used before; ask for a new one")
        if self._clock.monotonic() > until:
            raise NotAllowed(
                f"the token is older than {VALID_SECONDS:g} seconds; ask for a new one"
            )
        if digest != _digest(scope, params):
            raise NotAllowed(
                "the token is for another table or condition; ask for one for this statement"
            )
        return seen


def check_same_rows(now: SeenRows, confirmed: SeenRows) -> None:
    """Raises `NotAllowed` if a change would be made to other rows than were confirmed."""
    if now != confirmed:
        raise NotAllowed(
            f"the rows have changed since they were confirmed ({confirmed.rows} then, "
            f"{now.rows} now, and {confirmed.others} and {now.others} of other tables); ask for a "
            "new token"
        )


def confirmation_missing(what: str) -> NotAllowed:
    """Returns the error for a change without a token."""
    return NotAllowed(
        f"{what} needs a token: call get_confirmation(statement, params), check how many rows it "
        "would change, and pass the token as confirm="
    )


def _digest(scope: str, params: Params) -> str:
    values = sorted(params.items()) if isinstance(params, Mapping) else list(params)
    return hashlib.sha256(f"{scope}\0{values!r}".encode("utf-8", "surrogatepass")).hexdigest()


class SafeDatabaseClient:
    """Reads and changes a database, by checked statements only.

    Threads may share it: their statements and transactions take turns on its one connection.
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
        self._lock = threading.RLock()

    @classmethod
    def open(
        cls,
        address: Source,
        *,
        functions: Iterable[str] = (),
        clock: MonotonicClock = time,
        patience: float = 5.0,
    ) -> Self:
        """Connects to a SQLite file or a `postgresql://` address.

        Instead of an address, a function can return a connection of sqlite3 or psycopg, its own
        or a pool's. It is closed together with the client.

        `functions` are functions that statements may call in addition to those that are known to
        have no side effects. `patience` is how many seconds to wait for a lock.
        """
        own = frozenset(functions)
        connection = connect(read_source(address), functions=own, patience=patience)
        return cls(connection, functions=own, clock=clock)

    def query(self, sql: str, params: Params = ()) -> tuple[Row, ...]:
        """Returns the rows of a SELECT, each by column name."""
        allowed = _check_read(self._guard, sql)
        with self._lock, transaction(self._db, write=False):
            result = self._db.run(sql, params, allowed)
            self._db.commit()
        return result.rows

    def execute(self, sql: str, params: Params = (), *, confirm: object = None) -> StatementResult:
        """Runs one statement now, in a transaction of its own.

        A DELETE, and a statement that changes every row of a table of ten or more, needs
        `confirm=`, the token from `get_confirmation()`.
        """
        statement = Statement(sql, params, self._guard.check(sql))
        allowed = statement.allowed
        if confirm is not None:
            return self._execute_confirmed(statement, str(confirm))
        if must_confirm(allowed):
            raise confirmation_missing(allowed.kind.upper())
        if allowed.kind is StatementKind.READ:
            return StatementResult(self.query(sql, params), 0)
        with self._lock, transaction(self._db, write=True):
            result, needs_confirmation = run_checked(self._db, statement)
            if needs_confirmation:
                raise confirmation_missing(f"a change of every row of {allowed.table}")
            self._db.commit()
        return result

    def get_confirmation(self, sql: str, params: Params = ()) -> ChangeConfirmation:
        """Returns how many rows a statement would change, and a token for changing these rows.

        The token is valid once, for 30 seconds, for this statement with these values, and as long
        as it changes the same rows.
        """
        statement = Statement(sql, params, self._guard.check(sql))
        if statement.allowed.kind in (StatementKind.READ, StatementKind.LOCK):
            raise UsageError("a statement that changes nothing needs no confirmation")
        with self._lock, transaction(self._db, write=True):
            _result, seen = self._run_seen(statement)
        token = self._confirmations.issue(statement.allowed.scope, params, seen)
        return ChangeConfirmation(token, statement.allowed.table, seen.rows, seen.others)

    def get_delete_confirmation(
        self, table: str, where: str, params: Params = ()
    ) -> ChangeConfirmation:
        """Returns a token for deleting these rows, valid once, for 30 seconds."""
        return self.get_confirmation(self._delete(table, where), params)

    def delete(self, table: str, where: str, params: Params = (), *, confirm: object = None) -> int:
        """Deletes the rows that a token is for; returns how many there were."""
        return self.execute(self._delete(table, where), params, confirm=confirm).changed

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
        raise NotAllowed("a workflow cannot delete its database; delete it by hand")

    def staged(self) -> Staged:
        """Returns an empty collection of statements for one step."""
        return Staged(self)

    def read_only(self) -> Tables:
        """Returns a view for conditions, through which nothing can be changed."""
        return Tables(self.query)

    def done(self, marker: Marker) -> bool:
        """Whether a step's work was committed, by this process or an earlier one."""
        return self.noted(marker) is not None

    def noted(self, marker: Marker) -> str | None:
        """Returns the note that was stored with a step's work; None if it was not committed."""
        return self.notes([marker])[0]

    def notes(self, markers: Sequence[Marker]) -> list[str | None]:
        """Returns the notes of the work of several steps, each None if it was not committed."""
        with self._lock, transaction(self._db, write=False):
            notes = staging.read_notes(self._db, markers)
            self._db.commit()
        return notes

    def is_alive(self) -> bool:
        """Whether the connection was not lost."""
        if not self._lock.acquire(blocking=False):
            # Another thread is using it, and will notice.
            return True
        try:
            return self._db.is_alive()
        finally:
            self._lock.release()

    def close(self) -> None:
        """Closes the connection, without committing."""
        with self._lock:
            self._db.close()

    def __enter__(self) -> Self:
        """Returns the client, which is closed at the end of the block."""
        return self

    def __exit__(self, *_error: object) -> None:
        """Closes the client."""
        self.close()

    def _execute_confirmed(self, statement: Statement, token: str) -> StatementResult:
        confirmed = self._confirmations.redeem(token, statement.allowed.scope, statement.params)
        with self._lock, transaction(self._db, write=True):
            result, seen = self._run_seen(statement)
            check_same_rows(seen, confirmed)
            self._db.commit()
        return result

    def _run_seen(self, statement: Statement) -> tuple[StatementResult, SeenRows]:
        """Runs a change and returns what is needed to recognize its rows."""
        returning = f"{statement.sql.rstrip().rstrip(';')}\nRETURNING *"
        verdict = self._guard.verdict(returning)
        # A statement that returns something already, or a search index, which cannot.
        if not isinstance(verdict, Allowed) or not self._db.can_return(statement.allowed.table):
            result, impact, _needed = run_counted(self._db, statement)
            digest = rows_digest(result) if result.rows else ""
            return result, SeenRows(impact.rows, impact.others, digest)
        longer = replace(statement, sql=returning, allowed=verdict)
        result, impact, _needed = run_counted(self._db, longer)
        seen = SeenRows(impact.rows, impact.others, rows_digest(result))
        return StatementResult((), result.changed), seen

    def _delete(self, table: str, where: str) -> str:
        """Returns the statement, if there is such a table and the condition selects rows."""
        with self._lock, transaction(self._db, write=False):
            exists = self._db.has_table(table)
            self._db.commit()
        if not exists:
            raise NotAllowed(f"there is no table {table!r}; give the name of one, without quotes")
        # The name is quoted, so that no part of it is read as SQL. The condition is SQL, and is
        # checked like any other statement.
        sql = f"DELETE FROM {quoted_table(table)} WHERE {where}"  # noqa: S608
        if self._guard.check(sql).every_row:
            raise NotAllowed("DELETE with a condition that is true for every row is refused here")
        return sql


class Staged:
    """The statements of one step: checked when they are added, run when they are applied."""

    def __init__(self, client: SafeDatabaseClient) -> None:
        self._client = client
        self._statements: list[Statement] = []

    def stage(self, sql: str, params: Params = ()) -> None:
        """Adds a statement; raises `NotAllowed` if it may not run.

        One that needs a confirmation is accepted here; `apply` does not run it without one.
        """
        statement = Statement(sql, params, self._client._guard.check(sql))
        if statement.allowed.kind is StatementKind.READ:
            raise UsageError("a staged statement must change something; read with query() instead")
        self._statements.append(statement)

    def measure(self, *, by: SafeDatabaseClient | None = None) -> tuple[Impact, ...] | RolledBack:
        """Returns what the statements that need a confirmation would change, without changing it.

        `by` is another client, for the transaction itself.
        """
        client = by or self._client
        with client._lock:
            return staging.measure(client._db, self._statements)

    def apply(
        self,
        postconditions: Sequence[Postcondition],
        *,
        marker: tuple[str, str, int] | Marker,
        seconds: float = CONDITION_SECONDS,
        note: str = "",
        confirmed: Sequence[Impact] = (),
        after: Marker | None = None,
        by: SafeDatabaseClient | None = None,
    ) -> Applied:
        """Applies all in one transaction, which is committed only if every postcondition holds.

        If the database has the marker already, the work was done before and nothing happens. The
        note is stored with the marker. A statement that needs a confirmation must be in
        `confirmed`, with as many rows as it changes now; `measure` returns these. `after` is
        earlier work; raises `StoreError` if the database does not have it. `by` is another client,
        for the transaction itself.
        """
        client = by or self._client
        work = StepWork(
            self._statements, postconditions, Marker(*marker), seconds, note, confirmed, after
        )
        with client._lock:
            return staging.apply(client._db, _reader(client._db, client._guard), work)

    def __len__(self) -> int:
        """Returns the number of statements."""
        return len(self._statements)


def _reader(db: Connection, guard: Guard) -> Reader:
    def read(sql: str, params: Params) -> tuple[Row, ...]:
        return db.run(sql, params, _check_read(guard, sql)).rows

    return read


def _check_read(guard: Guard, sql: str) -> Allowed:
    allowed = guard.check(sql)
    if allowed.kind is not StatementKind.READ:
        raise NotAllowed(f"{allowed.kind.upper()} is refused here; only reading is allowed")
    return allowed
