"""The database of a workflow and its steps: reads happen now, changes together at the end."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from signoff.errors import NotAllowed, StepFailed, UsageError
from signoff.guarded_db.client import SafeDatabaseClient
from signoff.guarded_db.impact import Impact
from signoff.guarded_db.postconditions import Postcondition, Tables
from signoff.guarded_db.sources import Address, Source, connect, read_source
from signoff.guarded_db.staging import Marker, RolledBack, Unconfirmed
from signoff.guarded_db.verdict import Params


class Connections:
    """The connections of a workflow to its database, opened when they are first used.

    Opening a database takes longer than most steps, and a thousand parallel items must not open a
    thousand connections. So all steps of a process share one connection for reading, which each
    uses for a moment, and one for writing, which a step holds for its transaction. They are closed
    when the workflow is garbage-collected.
    """

    def __init__(self, source: Source) -> None:
        self._source = read_source(source)
        self._path = self._source.path if isinstance(self._source, Address) else None
        self._file: tuple[int, int] | None = None
        """Device and inode of the open file; the path may lead to another file by now."""
        self._reader: SafeDatabaseClient | None = None
        self._leases = 0
        """How many steps use the connection for reading."""
        self._writer: SafeDatabaseClient | None = None
        self._lock = threading.Lock()
        self._turn = threading.RLock()
        """Held by the step that writes."""

    def reader(self) -> SafeDatabaseClient:
        """Returns the shared connection for reading."""
        with self._lock:
            return self._current()

    def lease(self) -> SafeDatabaseClient:
        """Returns the shared connection for reading; each step calls `release` at its end."""
        with self._lock:
            reader = self._current()
            self._leases += 1
            return reader

    def release(self) -> None:
        """Gives a connection of the program's own pool back when no step uses it any more."""
        with self._lock:
            self._leases -= 1
            if self._leases or isinstance(self._source, Address) or self._reader is None:
                return
            reader, self._reader = self._reader, None
        reader.close()

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
            if not isinstance(self._source, Address):
                # It belongs to the program's own pool, which other threads may wait for.
                self._close_writer(writer)

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
        connection = connect(self._source)
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


class GuardedDatabase:
    """The database of one workflow; its steps share the connections."""

    def __init__(
        self,
        source: Source,
        *,
        address: str,
        backups: str | None,
        keep: int,
    ) -> None:
        """`address` is for backups, which need one even if a function returns connections."""
        self._address = address
        self._backups = Path(backups) if backups else None
        self._keep = keep
        self._connections = Connections(source)

    def begin(self) -> StepSession:
        """Returns the database for one attempt at a step."""
        return StepSession(self._connections)

    def back_up(self, reason: str, *, reuse: bool) -> str:
        """Returns the id of a new backup; `reuse` takes an existing one with the same reason."""
        from signoff.guarded_db.upkeep import Origin, Upkeep

        upkeep = Upkeep(self._address, backups=self._backups, keep=self._keep)
        existing = upkeep.backups() if reuse else ()
        found = next((backup.id for backup in existing if backup.reason == reason), None)
        return found or upkeep.backup(reason, origin=Origin.RUN).id


class StepSession(Tables):
    """The database during one attempt at a step."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._client = connections.lease()
        super().__init__(self._client.query)
        self._staged = self._client.staged()
        self._required: Marker | None = None

    def close(self) -> None:
        """Ends the use of the shared connection."""
        self._connections.release()

    def stage(self, sql: str, params: Params = ()) -> None:
        """Adds a statement to the step's work; raises `NotAllowed` if it may not run."""
        self._staged.stage(sql, params)

    def view(self) -> Tables:
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
        return self._client.notes([Marker(*key) for key in keys])

    def require(self, key: tuple[str, str, int, str]) -> None:
        """Makes `commit` raise `StoreError` if the database does not have this earlier work."""
        self._required = Marker(*key)

    def measure(self) -> list[dict[str, Any]]:
        """Returns the changes that a human has to confirm, as JSON values."""
        with self._connections.writer() as writer:
            measured = self._staged.measure(by=writer)
        if isinstance(measured, RolledBack):
            raise StepFailed(str(measured))
        return [impact.to_json() for impact in measured]

    def commit(
        self,
        proofs: Sequence[tuple[str, Callable[[Tables], bool], str]],
        key: tuple[str, str, int, str],
        note: str = "",
        confirmed: Sequence[Mapping[str, Any]] = (),
    ) -> str | None:
        """Applies everything in one transaction; raises `StepFailed` if a proof fails.

        Returns the note in the database: an earlier attempt's if that was committed first. None
        means that nothing was changed, because a change has to be confirmed.
        """
        conditions = [Postcondition(*proof) for proof in proofs]
        impacts = [Impact(**each) for each in confirmed]
        with self._connections.writer() as writer:
            applied = self._staged.apply(
                conditions,
                marker=Marker(*key),
                note=note,
                confirmed=impacts,
                after=self._required,
                by=writer,
            )
        if isinstance(applied, RolledBack):
            raise StepFailed(str(applied))
        if isinstance(applied, Unconfirmed):
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
