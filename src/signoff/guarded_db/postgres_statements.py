"""Sends statements to a PostgreSQL server in few round trips, and keeps the plans of known ones.

The driver's own cursors cannot read the rows of a prepared statement in parts, which the bound on
results needs, and a cursor for each statement takes as long as the statement itself.

The driver drops all plans of a session when it sees a ROLLBACK, ALTER or DROP. So every statement
of a session goes through here.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from signoff.guarded_db.ports import MOST_RESULT_BYTES, Row, result_too_large
from signoff.guarded_db.postgres_values import size_of
from signoff.postgres_driver import check_result, driver

if TYPE_CHECKING:
    import psycopg
    from psycopg.pq.abc import PGresult

MOST_PLANS = 200
"""Plans that a session keeps; each takes memory of the server."""
MOST_SEEN = 2_000

_CHUNK_ROWS = 16
"""Rows that arrive together; each may be large."""
_STALE_PLAN = frozenset({"0A000", "26000"})
"""The columns of a plan's result have changed, or the session has lost the plan."""

Values: TypeAlias = Sequence[object]
_Key: TypeAlias = tuple[str, tuple[int, ...]]
_Received: TypeAlias = "list[PGresult] | None"
"""The results of a statement; None if they are too large."""


class ServerRows(NamedTuple):
    """The rows of a statement."""

    names: list[str]
    rows: list[tuple[Any, ...]]
    changed: int
    """How many rows the server counted."""

    def by_name(self) -> tuple[Row, ...]:
        """Returns the rows, each by column name."""
        return tuple([dict(zip(self.names, row, strict=True)) for row in self.rows])


class _Message(NamedTuple):
    """A statement with its values, as it is sent."""

    key: _Key
    plan: bytes | None
    values: Sequence[Any] = ()
    formats: Sequence[int] | None = None


class ServerStatements:
    """The statements of one session; its user makes sure that they take turns."""

    def __init__(self, db: psycopg.Connection[Any], *, keep_plans: bool) -> None:
        """Plans can be kept only if no pooler gives each transaction another session."""
        from psycopg import generators

        self._db = db
        self._pgconn = db.pgconn
        self._encoding = db.info.encoding
        self._driver = driver()
        # A plain attribute is found sooner than a name that is imported for each statement.
        self._generators = generators
        self._keeps_plans = keep_plans
        self._plans: dict[_Key, bytes] = {}
        self._seen: set[_Key] = set()
        self._count = 0
        self._deferred = ""
        self.had_stale_plan = False
        """Whether a statement failed because of its plan; the user sets it back."""
        self._must_deallocate = False
        """Whether the server has plans that are not used any more."""
        # What a pooler does with several statements on their way is up to the pooler.
        self._can_pipeline = keep_plans and self._driver.capabilities.has_pipeline()
        can_chunk = self._driver.capabilities.has_stream_chunked()
        self._chunk_rows = _CHUNK_ROWS if can_chunk else 1

    def defer(self, command: str) -> None:
        """Sends a command together with the next statement, or not at all if none follows."""
        self._deferred = command

    def discard_deferred(self) -> None:
        """Forgets a deferred command."""
        self._deferred = ""

    def command(self, sql: str) -> list[tuple[Any, ...]]:
        """Runs a text of one or more statements without values; returns the last one's rows."""
        self._send_deferred()
        with self._db.lock:
            self._pgconn.send_query(sql.encode(self._encoding))
            results = self._db.wait(self._generators.execute(self._pgconn))
        return self._loaded(_checked(results)[-1:]).rows

    def run(self, sql: str, values: Values) -> ServerRows:
        """Runs one statement that returns few rows, if any; raises `StoreError` for too many."""
        results = self._exchange(sql, values)
        if any(result.ntuples and size_of(result) > MOST_RESULT_BYTES for result in results):
            raise result_too_large()
        return self._loaded(results)

    def read(self, sql: str, values: Values) -> ServerRows:
        """Reads rows as they arrive; raises `StoreError` when they are too many."""
        return self._loaded(self._exchange(sql, values, in_chunks=True))

    def own(self, *statements: tuple[str, Values]) -> list[list[tuple[Any, ...]]]:
        """Runs statements of signoff's own in one round trip; returns the rows of each."""
        if not self._can_pipeline or (len(statements) == 1 and not self._deferred):
            return [self.run(sql, values).rows for sql, values in statements]
        messages = [self._message(sql, values) for sql, values in statements]
        return [self._loaded(results).rows for results in self._pipelined(messages)]

    def forget(self, sql: str) -> None:
        """Drops the plans of a statement, which may be out of date."""
        for key in [key for key in self._plans if key[0] == sql]:
            self._drop_plan(key)

    def _exchange(
        self, sql: str, values: Values, *, keep_plan: bool = True, in_chunks: bool = False
    ) -> list[PGresult]:
        """Sends one statement and returns its results, none of which has failed."""
        message = self._message(sql, values, keep_plan=keep_plan)
        if self._deferred and self._can_pipeline:
            return self._pipelined([message], in_chunks=in_chunks)[-1]
        self._send_deferred()
        try:
            with self._db.lock:
                self._send(message)
                if in_chunks:
                    self._ask_for_chunks()
                    received = self._db.wait(self._bounded_results(flush=True))
                else:
                    received = self._db.wait(self._generators.execute(self._pgconn))
            results = _checked(received)
        except self._driver.Error as error:
            if not self._is_stale(message, error) or self._in_transaction():
                # A transaction has failed with it; the next one does without this plan.
                raise
            return self._exchange(sql, values, keep_plan=False, in_chunks=in_chunks)
        return results

    def _pipelined(
        self, messages: Sequence[_Message], *, in_chunks: bool = False
    ) -> list[list[PGresult]]:
        """Sends the deferred command and statements together; returns the statements' results.

        After one that fails, the server skips the rest.
        """
        command, self._deferred = self._deferred, ""
        every = [_Message((command, ()), None), *messages] if command else messages
        pgconn = self._pgconn
        with self._db.lock:
            pgconn.enter_pipeline_mode()
            try:
                for message in every:
                    self._send(message)
                pgconn.pipeline_sync()
                received = self._db.wait(self._pipeline_results(len(every), in_chunks))
            finally:
                self._leave_pipeline()
        checked = []
        for message, results in zip(every, received, strict=True):
            try:
                checked.append(_checked(results))
            except self._driver.Error as error:
                self._is_stale(message, error)
                raise
        return checked[-len(messages) :]

    def _pipeline_results(
        self, count: int, in_chunks: bool
    ) -> Generator[Any, Any, list[_Received]]:
        fetch_many = self._generators.fetch_many
        yield from self._generators.send(self._pgconn)
        received: list[_Received] = []
        for number in range(1, count + 1):
            if in_chunks and number == count:
                self._ask_for_chunks()
                received.append((yield from self._bounded_results(flush=False)))
            else:
                received.append((yield from fetch_many(self._pgconn)))
        # The end of the pipeline is a result as well.
        yield from fetch_many(self._pgconn)
        return received

    def _leave_pipeline(self) -> None:
        try:
            self._pgconn.exit_pipeline_mode()
        except self._driver.Error:
            # Not all results were received, so the connection cannot be used any more.
            self._db.close()

    def _send(self, message: _Message) -> None:
        if message.plan is not None:
            self._pgconn.send_query_prepared(message.plan, message.values, message.formats)
            return
        sql, types = message.key
        text = sql.encode(self._encoding)
        self._pgconn.send_query_params(text, message.values, types, message.formats)

    def _send_deferred(self) -> None:
        command, self._deferred = self._deferred, ""
        if command:
            self.command(command)

    def _message(self, sql: str, values: Values, *, keep_plan: bool = True) -> _Message:
        dumped: Sequence[Any] = ()
        types: tuple[int, ...] = ()
        formats = None
        if values:
            transformer = self._driver.adapt.Transformer(self._db)
            automatic = [self._driver.adapt.PyFormat.AUTO] * len(values)
            dumped = transformer.dump_sequence(values, automatic)
            types, formats = tuple(transformer.types), transformer.formats
        key = sql, types
        return _Message(key, self._plan(key) if keep_plan else None, dumped, formats)

    def _plan(self, key: _Key) -> bytes | None:
        """Returns the name of a prepared statement; None for one that is sent the first time."""
        plan = self._plans.get(key)
        if plan is not None or not self._keeps_plans:
            return plan
        if key not in self._seen:
            if len(self._seen) >= MOST_SEEN:
                self._seen.clear()
            self._seen.add(key)
            return None
        # A statement that cannot be prepared must fail in the transaction, if there is one.
        self._send_deferred()
        if self._must_deallocate:
            self.command("DEALLOCATE ALL")
            self._must_deallocate = False
        if len(self._plans) >= MOST_PLANS:
            self._drop_plan(next(iter(self._plans)))
        self._count += 1
        plan, (sql, types) = f"signoff_{self._count}".encode(), key
        with self._db.lock:
            self._pgconn.send_prepare(plan, sql.encode(self._encoding), types)
            _checked(self._db.wait(self._generators.execute(self._pgconn)))
        self._plans[key] = plan
        return plan

    def _drop_plan(self, key: _Key) -> None:
        self.command(f"DEALLOCATE {self._plans.pop(key).decode()}")

    def _is_stale(self, message: _Message, error: psycopg.Error) -> bool:
        """Whether a statement failed because of its plan; then no plan is used again.

        Others of the same table are likely to be out of date as well.
        """
        if message.plan is None or error.sqlstate not in _STALE_PLAN:
            return False
        self._plans.clear()
        self._must_deallocate = self.had_stale_plan = True
        return True

    def _in_transaction(self) -> bool:
        return bool(self._pgconn.transaction_status)

    def _ask_for_chunks(self) -> None:
        if self._chunk_rows > 1:
            self._pgconn.set_chunked_rows_mode(self._chunk_rows)
        else:
            self._pgconn.set_single_row_mode()

    def _bounded_results(self, *, flush: bool) -> Generator[Any, Any, _Received]:
        """Receives results; the rest of one that is too large is canceled, and dropped."""
        fetch, pgconn = self._generators.fetch, self._pgconn
        results: list[PGresult] = []
        size, is_too_large = 0, False
        if flush:
            yield from self._generators.send(pgconn)
        # All are received in any case, or the connection could not be used any more.
        while (result := (yield from fetch(pgconn))) is not None:
            if is_too_large:
                continue
            size += size_of(result)
            results.append(result)
            if size > MOST_RESULT_BYTES:
                is_too_large = True
                results.clear()
                with suppress(self._driver.Error):
                    self._db.cancel_safe(timeout=2.0)
        return None if is_too_large else results

    def _loaded(self, results: Iterable[PGresult]) -> ServerRows:
        names: list[str] = []
        rows: list[tuple[Any, ...]] = []
        changed = 0
        transformer = None
        for result in results:
            changed = result.command_tuples or 0
            columns = result.nfields
            if not columns:
                continue
            if not names:
                names = [(result.fname(n) or b"").decode(self._encoding) for n in range(columns)]
            if result.ntuples:
                transformer = transformer or self._driver.adapt.Transformer(self._db)
                transformer.set_pgresult(result)
                rows += transformer.load_rows(0, result.ntuples, tuple)
        return ServerRows(names, rows, changed)


def _checked(results: _Received) -> list[PGresult]:
    """Returns results if the statement has succeeded; raises the driver's error if it has not."""
    if results is None:
        raise result_too_large()
    for result in results:
        check_result(result)
    return results
