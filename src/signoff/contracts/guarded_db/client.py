"""The client for the user's own database, which checks every statement."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn, Self

from signoff.contracts.guarded_db import staging
from signoff.contracts.guarded_db.guard import Guard
from signoff.contracts.guarded_db.ports import (
    Address,
    Connection,
    Row,
    StatementResult,
    read_address,
    transaction,
)
from signoff.contracts.guarded_db.verdict import Allowed, Params, StatementKind, quoted_table
from signoff.core.errors import NotAllowed, StepFailed, UsageError

# Tokens that allow one particular change, once, for a short time, of the rows that were seen.


VALID_SECONDS = 30.0
MOST_OPEN = 1_000
"""Unused tokens that are stored; the oldest are dropped first."""


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

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._open: dict[str, tuple[str, float, SeenRows]] = {}

    def issue(self, scope: str, params: Params, seen: SeenRows) -> str:
        """Returns a new token for one change of these rows."""
        while len(self._open) >= MOST_OPEN:
            del self._open[next(iter(self._open))]
        token = secrets.token_urlsafe(18)
        until = self._clock() + VALID_SECONDS
        self._open[token] = (_digest(scope, params), until, seen)
        return token

    def redeem(self, token: str, scope: str, params: Params) -> SeenRows:
        """Uses a token up; raises `NotAllowed` if it is wrong or too old."""
        digest, until, seen = self._open.pop(token, ("", 0.0, None))
        if seen is None:
            raise NotAllowed("the token is unknown or was used before; ask for a new one")
        if self._clock() > until:
            raise NotAllowed(
                f"the token is older than {VALID_SECONDS:g} seconds; ask for a new one"
            )
        if digest != _digest(scope, params):
            raise NotAllowed(
                "the token is for another table or condition; ask for one for this statement"
            )
        return seen


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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._db = connection
        self._guard = Guard(connection.dialect, functions=functions)
        self._confirmations = Confirmations(clock)
        self._lock = threading.RLock()

    @classmethod
    def open(
        cls,
        address: str | Path,
        *,
        functions: Iterable[str] = (),
        clock: Callable[[], float] = time.monotonic,
        patience: float = 5.0,
    ) -> Self:
        """Connects to a SQLite file or a `postgresql://` address.

        `functions` are functions that statements may call in addition to those that are known to
        have no side effects. `patience` is how many seconds to wait for a lock.
        """
        own = frozenset(functions)
        connection = connect(read_address(address), own, patience)
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
        statement = staging.Statement(sql, params, self._guard.check(sql))
        allowed = statement.allowed
        if confirm is not None:
            return self._execute_confirmed(statement, str(confirm))
        if staging.must_confirm(allowed):
            raise confirmation_missing(allowed.kind.upper())
        if allowed.kind is StatementKind.READ:
            return StatementResult(self.query(sql, params), 0)
        with self._lock, transaction(self._db, write=True):
            result, needs_confirmation = staging.run_checked(self._db, statement)
            if needs_confirmation:
                raise confirmation_missing(f"a change of every row of {allowed.table}")
            self._db.commit()
        return result

    def get_confirmation(self, sql: str, params: Params = ()) -> ChangeConfirmation:
        """Returns how many rows a statement would change, and a token for changing these rows.

        The token is valid once, for 30 seconds, for this statement with these values, and as long
        as it changes the same rows.
        """
        statement = staging.Statement(sql, params, self._guard.check(sql))
        if statement.allowed.kind is StatementKind.READ:
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

    def staged(self) -> StagedStatements:
        """Returns an empty collection of statements for one step."""
        return StagedStatements(self)

    def read_only(self) -> staging.Tables:
        """Returns a view for conditions, through which nothing can be changed."""
        return staging.Tables(self.query)

    def done(self, marker: staging.Marker) -> bool:
        """Whether a step's work was committed, by this process or an earlier one."""
        return self.notes([marker]) != [None]

    def notes(self, markers: Sequence[staging.Marker]) -> list[str | None]:
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

    def _execute_confirmed(self, statement: staging.Statement, token: str) -> StatementResult:
        confirmed = self._confirmations.redeem(token, statement.allowed.scope, statement.params)
        with self._lock, transaction(self._db, write=True):
            result, seen = self._run_seen(statement)
            if seen != confirmed:
                raise NotAllowed(
                    f"the rows have changed since they were confirmed ({confirmed.rows} then, "
                    f"{seen.rows} now, and {confirmed.others} and {seen.others} of other tables); "
                    "ask for a new token"
                )
            self._db.commit()
        return result

    def _run_seen(self, statement: staging.Statement) -> tuple[StatementResult, SeenRows]:
        """Runs a change and returns what is needed to recognize its rows."""
        returning = f"{statement.sql.rstrip().rstrip(';')}\nRETURNING *"
        verdict = self._guard.verdict(returning)
        # A statement that returns something already, or a search index, which cannot.
        if not isinstance(verdict, Allowed) or not self._db.can_return(statement.allowed.table):
            result, impact, _needed = staging.run_counted(self._db, statement)
            digest = staging.rows_digest(result) if result.rows else ""
            return result, SeenRows(impact.rows, impact.others, digest)
        longer = replace(statement, sql=returning, allowed=verdict)
        result, impact, _needed = staging.run_counted(self._db, longer)
        seen = SeenRows(impact.rows, impact.others, staging.rows_digest(result))
        return StatementResult((), result.changed), seen

    def _delete(self, table: str, where: str) -> str:
        """Returns the statement, if there is such a table."""
        with self._lock, transaction(self._db, write=False):
            exists = self._db.has_table(table)
            self._db.commit()
        if not exists:
            raise NotAllowed(f"there is no table {table!r}; give the name of one, without quotes")
        # The name is quoted, so that no part of it is read as SQL. The condition is SQL, and is
        # checked like any other statement.
        return f"DELETE FROM {quoted_table(table)} WHERE {where}"  # noqa: S608


class StagedStatements:
    """The statements of one step: checked when they are added, run when they are applied."""

    def __init__(self, client: SafeDatabaseClient) -> None:
        self._client = client
        self._statements: list[staging.Statement] = []

    def stage(self, sql: str, params: Params = ()) -> None:
        """Adds a statement; raises `NotAllowed` if it may not run.

        One that needs a confirmation is accepted here; `apply` does not run it without one.
        """
        statement = staging.Statement(sql, params, self._client._guard.check(sql))
        if statement.allowed.kind is StatementKind.READ:
            raise UsageError("a staged statement must change something; read with query() instead")
        self._statements.append(statement)

    def measure(
        self, *, by: SafeDatabaseClient | None = None
    ) -> tuple[staging.Impact, ...] | staging.RolledBack:
        """Returns what the statements that need a confirmation would change, without changing it.

        `by` is another client, for the transaction itself.
        """
        client = by or self._client
        with client._lock:
            return staging.measure(client._db, self._statements)

    def apply(
        self,
        postconditions: Sequence[staging.Postcondition],
        *,
        marker: tuple[str, str, int] | staging.Marker,
        seconds: float = staging.CONDITION_SECONDS,
        note: str = "",
        confirmed: Sequence[staging.Impact] = (),
        after: staging.Marker | None = None,
    ) -> staging.Applied:
        """Applies all in one transaction, which is committed only if every postcondition holds.

        If the database has the marker already, the work was done before and nothing happens. The
        note is stored with the marker. A statement that needs a confirmation must be in
        `confirmed`, with as many rows as it changes now; `measure` returns these. `after` is
        earlier work; raises `StoreError` if the database does not have it.
        """
        work = staging.StepWork(
            self._statements,
            postconditions,
            staging.Marker(*marker),
            seconds,
            note,
            confirmed,
            after,
        )
        return _apply_each(self._client, [work])[0]

    def __len__(self) -> int:
        """Returns the number of statements."""
        return len(self._statements)


def _apply_each(
    client: SafeDatabaseClient, works: Sequence[staging.StepWork]
) -> Sequence[staging.Applied]:
    """Applies work, that of several steps with one commit."""
    # One transaction at a time on this connection; another thread's read would become part of it.
    with client._lock:
        reader = _reader(client._db, client._guard)
        if len(works) == 1:
            return [staging.apply(client._db, reader, works[0])]
        return staging.apply_together(client._db, reader, works)


def _reader(db: Connection, guard: Guard) -> staging.Reader:
    def read(sql: str, params: Params) -> tuple[Row, ...]:
        return db.run(sql, params, _check_read(guard, sql)).rows

    return read


def _check_read(guard: Guard, sql: str) -> Allowed:
    allowed = guard.check(sql)
    if allowed.kind is not StatementKind.READ:
        raise NotAllowed(f"{allowed.kind.upper()} is refused here; only reading is allowed")
    return allowed


def connect(address: Address, functions: Iterable[str] = (), patience: float = 5.0) -> Connection:
    """Opens a connection; the driver of the other kind of database is not loaded."""
    if address.path is not None:
        from signoff.contracts.guarded_db.sqlite import SqliteConnection

        return SqliteConnection(address.path, functions=functions, patience=patience)
    from signoff.contracts.guarded_db.postgres import PostgresConnection

    return PostgresConnection(address.url, functions=functions, patience=patience)


MOST_TOGETHER = 32
"""Steps that share a commit; other programs can use the file in between."""


@dataclass(eq=False)
class _PendingWork:
    """The work of one step, and how it ended."""

    work: staging.StepWork
    end: staging.Applied | None = None


class Connections:
    """The connections of a workflow to its database, opened when they are first used.

    Opening a database takes longer than most steps, and a thousand parallel items must not open a
    thousand connections. So all steps of a process share one connection for reading, which each
    uses for a moment, and one for writing, which a step holds for its transaction. They are closed
    when the workflow is garbage-collected.
    """

    def __init__(self, address: str | Path) -> None:
        self._address = read_address(address)
        self._path = self._address.path
        self._file: tuple[int, int] | None = None
        """Device and inode of the open file; the path may lead to another file by now."""
        self._reader: SafeDatabaseClient | None = None
        self._writer: SafeDatabaseClient | None = None
        self._lock = threading.Lock()
        self._turn = threading.RLock()
        """Held by the step that writes."""
        self._waiting: list[_PendingWork] = []
        """The work of the steps that write or wait for their turn."""

    def begin(self) -> StepSession:
        """Returns the database for one attempt at a step."""
        return StepSession(self)

    def reader(self) -> SafeDatabaseClient:
        """Returns the shared connection for reading."""
        with self._lock:
            return self._current()

    @contextmanager
    def writer(self) -> Iterator[SafeDatabaseClient]:
        """Yields the connection for writing, to one step at a time."""
        with self._turn:
            writer = self._current_writer()
            try:
                yield writer
            except BaseException:
                # Its state is unknown, so the next step gets another one.
                self._close_writer(writer)
                raise

    def apply(self, work: staging.StepWork) -> staging.Applied:
        """Applies work when it is its turn, or waits for another step that does it.

        A SQLite file has one writer at a time, and each commit waits for the disk. So the step
        whose turn it is also does the work of those that wait: a thousand items that end together
        need a fraction of a thousand commits. Each succeeds or fails as it would alone.
        """
        own = _PendingWork(work)
        self._waiting.append(own)
        try:
            with self._turn:
                return own.end or self._apply_with_others(own)
        finally:
            self._waiting.remove(own)

    def _apply_with_others(self, own: _PendingWork) -> staging.Applied:
        group = [own, *self._others(own)]
        with self.writer() as writer:
            if len(group) > 1:
                # What fails may end the transaction of all. Alone, each work gets its own error.
                with suppress(Exception):
                    ends = _apply_each(writer, [each.work for each in group])
                    for each, end in zip(group, ends, strict=True):
                        each.end = end
                    return ends[0]
            # The others take their own turns.
            return _apply_each(writer, [own.work])[0]

    def _others(self, own: _PendingWork) -> list[_PendingWork]:
        # A server groups the commits of its sessions itself.
        if self._path is None or not own.work.is_quick:
            return []
        waiting = [each for each in list(self._waiting) if each is not own and each.end is None]
        return [each for each in waiting if each.work.is_quick][: MOST_TOGETHER - 1]

    def _current_writer(self) -> SafeDatabaseClient:
        with self._lock:
            # The step may have run for hours: a backup may have been restored meanwhile, and a
            # server may have closed the connection.
            self._current()
            if self._writer is None or not self._writer.is_alive():
                self._writer = self._open()
            return self._writer

    def _close_writer(self, writer: SafeDatabaseClient) -> None:
        self._writer = None
        writer.close()

    def _current(self) -> SafeDatabaseClient:
        if self._reader is None or not self._is_current(self._reader):
            self._reader, self._writer = self._open(), None
            self._file = self._file_id()
        return self._reader

    def _open(self) -> SafeDatabaseClient:
        connection = connect(self._address)
        client = SafeDatabaseClient(connection)
        # Nothing closes a workflow, so the connection is closed together with its client.
        weakref.finalize(client, connection.close)
        return client

    def _is_current(self, client: SafeDatabaseClient) -> bool:
        """Returns whether an open connection still leads to the database."""
        if self._path is not None:
            # The file is still open, so its inode cannot have been reused.
            return self._file_id() == self._file
        return client.is_alive()

    def _file_id(self) -> tuple[int, int] | None:
        try:
            stat = self._path.stat() if self._path is not None else None
        except OSError:
            return None
        return (stat.st_dev, stat.st_ino) if stat is not None else None


class StepSession(staging.Tables):
    """The database during one attempt at a step."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._client = connections.reader()
        super().__init__(self._client.query)
        self._staged = self._client.staged()
        self._required: staging.Marker | None = None

    def stage(self, sql: str, params: Params = ()) -> None:
        """Adds a statement to the step's work; raises `NotAllowed` if it may not run."""
        self._staged.stage(sql, params)

    def view(self) -> staging.Tables:
        """Returns a read-only view."""
        return self._client.read_only()

    def take(self, statements: Sequence[Sequence[Any]]) -> None:
        """Stages the statements of a worker, each as `[sql]` or `[sql, params]`.

        A refused statement is the worker's mistake, which a retry can fix: `StepFailed`.
        """
        if not isinstance(statements, list | tuple):
            raise StepFailed(f"{statements!r:.200} is not a list of statements: [[sql, params]]")
        for each in statements:
            try:
                self.stage(*_statement(each))
            except (NotAllowed, UsageError) as error:
                raise StepFailed(str(error)) from error

    def committed(self, keys: Sequence[tuple[str, str, int, str]]) -> list[str | None]:
        """Returns the note of each work that was committed before, else None."""
        return self._client.notes([staging.Marker(*key) for key in keys])

    def require(self, key: tuple[str, str, int, str]) -> None:
        """Makes `commit` raise `StoreError` if the database does not have this earlier work."""
        self._required = staging.Marker(*key)

    def measure(self) -> list[dict[str, Any]]:
        """Returns the changes that a human has to confirm, as JSON values."""
        with self._connections.writer() as writer:
            measured = self._staged.measure(by=writer)
        if isinstance(measured, staging.RolledBack):
            raise StepFailed(str(measured))
        return [impact.to_json() for impact in measured]

    def commit(
        self,
        proofs: Sequence[tuple[str, Callable[[staging.Tables], bool], str, bool]],
        key: tuple[str, str, int, str],
        note: str = "",
        confirmed: Sequence[Mapping[str, Any]] = (),
    ) -> str | None:
        """Applies everything in one transaction; raises `StepFailed` if a proof fails.

        Returns the note in the database: an earlier attempt's if that was committed first. None
        means that nothing was changed, because a change has to be confirmed.
        """
        conditions = [staging.Postcondition(*proof) for proof in proofs]
        impacts = [staging.Impact(**each) for each in confirmed]
        work = staging.StepWork(
            self._staged._statements,
            conditions,
            staging.Marker(*key),
            note=note,
            confirmed=impacts,
            after=self._required,
        )
        applied = self._connections.apply(work)
        if isinstance(applied, staging.RolledBack):
            raise StepFailed(str(applied))
        if isinstance(applied, staging.Unconfirmed):
            return None
        return self.committed([key])[0] or note if applied.already else note


def _statement(entry: Any) -> tuple[str, Params]:
    match entry:
        case str():
            return entry, ()
        case [str() as sql]:
            return sql, ()
        case [str() as sql, (list() | tuple() | dict()) as params]:
            return sql, params
        case _:
            raise StepFailed(f"{entry!r:.200} is not a statement: [sql, params]")
