"""Sends statements to a PostgreSQL server in few round trips, and keeps the plans of known ones.

The driver's own cursors cannot read the rows of a prepared statement in parts, which the bound on
results needs, and a cursor for each statement takes as long as the statement itself.

The driver drops all plans of a session when it sees a ROLLBACK, ALTER or DROP. So every statement
of a session goes through here.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
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


class ServerRows(NamedTuple):
    """The rows of a statement."""

    names: list[str]
    rows: list[tuple[Any, ...]]
    changed: int
    """How many rows the server counted."""

    def by_name(self) -> tuple[Row, ...]:
        """Returns the rows, each by column name."""
        return tuple(dict(zip(self.names, row, strict=True)) for row in self.rows)


class ServerStatements:
    """The statements of one session; its user makes sure that they take turns."""

    def __init__(self, db: psycopg.Connection[Any], *, keep_plans: bool) -> None:
        """Plans can be kept only if no pooler gives each transaction another session."""
        self._db = db
        self._keeps_plans = keep_plans
        self._plans: dict[_Key, str] = {}
        self._seen: set[_Key] = set()
        self._count = 0
        self._prefix = ""
        can_chunk = driver().capabilities.has_stream_chunked()
        self._chunk_rows = _CHUNK_ROWS if can_chunk else 1

    def defer(self, command: str) -> None:
        """Sends a command together with the next statement, or not at all if none follows."""
        self._prefix = command

    def discard_deferred(self) -> None:
        """Forgets a deferred command."""
        self._prefix = ""

    def command(self, sql: str) -> list[tuple[Any, ...]]:
        """Runs a text of one or more statements without values; returns the last one's rows."""
        return self._loaded(self._transformer(), self._send_text(sql)[-1:]).rows

    def run(self, sql: str, values: Values) -> ServerRows:
        """Runs one statement that returns few rows, if any; raises `StoreError` for too many."""
        return self._run(sql, values, self._exchange)

    def own(self, sql: str, values: Values) -> list[tuple[Any, ...]]:
        """Runs a statement of signoff's own, in one round trip with a deferred command."""
        if not self._prefix:
            return self.run(sql, values).rows
        return self.together((sql, values))[0]

    def together(self, *statements: tuple[str, Values]) -> list[list[tuple[Any, ...]]]:
        """Runs statements of signoff's own, in one round trip if all have plans."""
        calls = [self._call(sql, values) for sql, values in statements]
        if "" in calls:
            return [self.run(sql, values).rows for sql, values in statements]
        results = self._send_text("; ".join(calls))[-len(calls) :]
        return [self._loaded(self._transformer(), [result]).rows for result in results]

    def _call(self, sql: str, values: Values) -> str:
        """Returns a text that runs a statement by its plan; empty if it has none."""
        transformer, _values = self._dumped(values)
        plan = self._plans.get((sql, tuple(transformer.types or ())))
        if plan is None:
            return ""
        literals = b", ".join(bytes(transformer.as_literal(value)) for value in values)
        return f"EXECUTE {plan}({literals.decode(self._db.info.encoding)})"

    def _send_text(self, sql: str) -> list[PGresult]:
        text, self._prefix = f"{self._prefix}; {sql}" if self._prefix else sql, ""
        encoded = text.encode(self._db.info.encoding)
        return self._exchange(lambda: self._db.pgconn.send_query(encoded))

    def read(self, sql: str, values: Values, *, keep_plan: bool = True) -> ServerRows:
        """Reads rows as they arrive; raises `StoreError` when they are too many."""
        return self._run(sql, values, self._exchange_in_chunks, keep_plan=keep_plan)

    def forget(self, sql: str) -> None:
        """Drops the plans of a statement, which may be out of date."""
        for key in [key for key in self._plans if key[0] == sql]:
            self.command(f"DEALLOCATE {self._plans.pop(key)}")

    def _run(
        self,
        sql: str,
        values: Values,
        exchange: Callable[[Callable[[], None]], list[PGresult]],
        *,
        keep_plan: bool = True,
    ) -> ServerRows:
        self._send_deferred()
        transformer, dumped = self._dumped(values)
        types, formats = transformer.types, transformer.formats
        key = sql, tuple(types or ())
        plan = self._plan(key) if keep_plan else None
        pgconn = self._db.pgconn
        if plan is not None:
            name = plan.encode()
            send = lambda: pgconn.send_query_prepared(name, dumped, formats)  # noqa: E731
        else:
            text = sql.encode(self._db.info.encoding)
            send = lambda: pgconn.send_query_params(text, dumped, types, formats)  # noqa: E731
        try:
            results = exchange(send)
        except driver().Error as error:
            if plan is None or error.sqlstate not in _STALE_PLAN:
                raise
            del self._plans[key]
            if self._in_transaction():
                # The transaction has failed with it; the next one does without this plan.
                raise
            return self._run(sql, values, exchange, keep_plan=False)
        return self._loaded(transformer, results)

    def _send_deferred(self) -> None:
        command, self._prefix = self._prefix, ""
        if command:
            self.command(command)

    def _plan(self, key: _Key) -> str | None:
        """Returns the name of a prepared statement; None for one that is sent the first time."""
        plan = self._plans.get(key)
        if plan is not None or not self._keeps_plans:
            return plan
        if key not in self._seen:
            if len(self._seen) >= MOST_SEEN:
                self._seen.clear()
            self._seen.add(key)
            return None
        if len(self._plans) >= MOST_PLANS:
            oldest = next(iter(self._plans))
            self.command(f"DEALLOCATE {self._plans.pop(oldest)}")
        self._count += 1
        plan, (sql, types) = f"signoff_{self._count}", key
        text = sql.encode(self._db.info.encoding)
        self._exchange(lambda: self._db.pgconn.send_prepare(plan.encode(), text, types))
        self._plans[key] = plan
        return plan

    def _dumped(self, values: Values) -> tuple[Any, Sequence[Any]]:
        transformer = self._transformer()
        if not values:
            return transformer, ()
        formats = [driver().adapt.PyFormat.AUTO] * len(values)
        return transformer, transformer.dump_sequence(values, formats)

    def _transformer(self) -> Any:
        return driver().adapt.Transformer(self._db)

    def _in_transaction(self) -> bool:
        return bool(self._db.pgconn.transaction_status)

    def _exchange(self, send: Callable[[], None]) -> list[PGresult]:
        from psycopg.generators import execute

        with self._db.lock:
            send()
            results: list[PGresult] = self._db.wait(execute(self._db.pgconn))
        for result in results:
            check_result(result)
            if result.ntuples and size_of(result) > MOST_RESULT_BYTES:
                raise result_too_large()
        return results

    def _exchange_in_chunks(self, send: Callable[[], None]) -> list[PGresult]:
        with self._db.lock:
            send()
            if self._chunk_rows > 1:
                self._db.pgconn.set_chunked_rows_mode(self._chunk_rows)
            else:
                self._db.pgconn.set_single_row_mode()
            return self._db.wait(self._bounded_results())

    def _bounded_results(self) -> Generator[Any, Any, list[PGresult]]:
        """Receives results; the rest of one that is too large is canceled, and dropped."""
        from psycopg.generators import fetch, send

        results: list[PGresult] = []
        size, is_too_large = 0, False
        yield from send(self._db.pgconn)
        # All are received in any case, or the connection could not be used any more.
        while (result := (yield from fetch(self._db.pgconn))) is not None:
            if is_too_large:
                continue
            size += size_of(result)
            results.append(result)
            if size > MOST_RESULT_BYTES:
                is_too_large = True
                results.clear()
                with suppress(driver().Error):
                    self._db.cancel_safe(timeout=2.0)
        if is_too_large:
            raise result_too_large()
        for result in results:
            check_result(result)
        return results

    def _loaded(self, transformer: Any, results: Iterable[PGresult]) -> ServerRows:
        names: list[str] = []
        rows: list[tuple[Any, ...]] = []
        changed = 0
        for result in results:
            changed = result.command_tuples or 0
            if not result.nfields:
                continue
            if not names:
                encoding = self._db.info.encoding
                columns = range(result.nfields)
                names = [(result.fname(each) or b"").decode(encoding) for each in columns]
            if result.ntuples:
                transformer.set_pgresult(result)
                rows += transformer.load_rows(0, result.ntuples, tuple)
        return ServerRows(names, rows, changed)
