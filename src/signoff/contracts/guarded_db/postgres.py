"""A connection to the user's PostgreSQL database; the server enforces the guard's verdicts.

PostgreSQL has no authorizer. Instead, reads run in READ ONLY transactions, and the server judges a
change before it runs. Reads and explanations use the protocol that accepts
one statement at a time, so a text with several of them fails before any of it runs.

The limits are set in each transaction: a connection pooler may give each transaction another
session. For the same reason no statement is prepared.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from signoff.contracts.guarded_db.guard import named_parameters
from signoff.contracts.guarded_db.ports import (
    FailedTransactionError,
    ResultSize,
    Row,
    StatementResult,
)
from signoff.contracts.guarded_db.verdict import (
    ALLOWED,
    OWN_SCHEMA,
    Allowed,
    Dialect,
    Params,
    StatementKind,
    quoted_table,
)
from signoff.core.errors import NotAllowed, StoreBusy, StoreError, WriteFailed
from signoff.core.remedies import SetUpDatabase
from signoff.store.databases import driver, label_of

if TYPE_CHECKING:
    import psycopg

PATIENCE_SECONDS = 5.0
"""How long to wait for a connection, and for a lock of another session."""

STATEMENT_SECONDS = 30.0
"""The server aborts a statement that takes longer."""

_BUSY = frozenset({"55P03", "40P01", "40001"})
"""Lock not available, deadlock, could not serialize: another session is in the way."""

_CHANGES = """
SELECT current_setting('track_counts'), coalesce(sum(n_tup_ins + n_tup_upd + n_tup_del), 0)
FROM pg_stat_xact_user_tables
"""
_ABORTED = "57014"
_DENIED = "42501"
_FAILED = 3
"""The status of a transaction in which a statement has failed."""
_OPEN = frozenset({1, 2, _FAILED})
"""The status of a transaction that is open. A connection that was lost has another one."""
# Asks a PostgreSQL server what a statement would do, before it runs.
#
# The server explains a change: its plan must change the allowed table and no other. The server's
# list of functions says which names in a statement call a function of the project. Nothing is
# remembered: the schema may change between two statements.


Query: TypeAlias = Callable[[str, Sequence[object]], list[tuple[Any, ...]]]

_CALLS = """
WITH names AS (
    SELECT kind, array_agg(lower(name::name::text COLLATE "C")) AS "all"
    FROM (SELECT 1 AS kind, unnest($1::text[]) AS name
          UNION ALL SELECT 2, unnest($2::text[])
          UNION ALL SELECT 3, unnest($3::text[])) AS found
    GROUP BY kind
)
SELECT DISTINCT n.nspname || '.' || p.proname FROM pg_proc AS p
JOIN pg_namespace AS n ON n.oid = p.pronamespace
CROSS JOIN LATERAL (SELECT lower(p.proname::text COLLATE "C") AS name) AS folded
WHERE pg_function_is_visible(p.oid) AND (
    (folded.name = ANY((SELECT "all" FROM names WHERE kind = 1)::text[])
     AND n.nspname <> 'pg_catalog' AND NOT EXISTS (
        SELECT 1 FROM pg_depend AS d
        WHERE d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'))
    OR (p.pronargs >= 1 AND p.pronargs - p.pronargdefaults <= 1 AND (
        (folded.name = ANY((SELECT "all" FROM names WHERE kind = 2)::text[])
         AND n.nspname <> 'pg_catalog' AND EXISTS (
            SELECT 1 FROM pg_type AS t
            WHERE t.oid = p.proargtypes[0] AND t.typtype IN ('c', 'p', 'd')))
        OR (folded.name = ANY((SELECT "all" FROM names WHERE kind = 3)::text[])
            AND NOT (n.nspname = 'pg_catalog' AND p.provolatile = 'i')))))
"""
"""The functions that a statement calls: the project's own by the name of a harmless one, one with
a row as its argument as `row.f`, and any other one as `value.f`. Immutable functions of
PostgreSQL have no side effects. Functions of extensions are on the list by their names. The server
cuts names off and folds them as it does when it looks for a function."""


def check_change(
    sql: str, values: Sequence[object], allowed: Allowed, own: frozenset[str], query: Query
) -> None:
    """Raises `NotAllowed` if a statement would do anything but what it is allowed to."""
    check_calls(allowed, own, query)
    _check_plan(query(f"EXPLAIN (FORMAT JSON, COSTS OFF) {sql}", values), allowed)


def check_calls(allowed: Allowed, own: frozenset[str], query: Query) -> None:
    """Raises `NotAllowed` if a statement calls a function that it may not call.

    `own` are functions that the project allows, in lower case.
    """
    names = allowed.names
    of_rows = {name for name in names.of_rows if name.lower() not in own}
    of_values = {name for name in names.of_values if name.lower() not in own}
    harmless = {name for name in of_values if name.lower() in ALLOWED["postgres"]}
    # The project may have a function by the name of a harmless one.
    called = (names.called - own) | harmless
    of_values -= harmless
    if not (called or of_rows or of_values):
        return
    found = query(_CALLS, [sorted(called), sorted(of_rows), sorted(of_values)])
    if found:
        function = min(str(name) for (name,) in found)
        raise NotAllowed(
            f"the statement calls the function {function}, which is not on the list of "
            "functions without side effects; leave it out, or add it to the guard's functions"
        )


def _check_plan(plan: object, allowed: Allowed) -> None:
    changes = set(_changes(plan))
    if changes != {(allowed.kind.value, allowed.table)}:
        planned = ", ".join(sorted(" ".join(change) for change in changes)) or "nothing"
        raise NotAllowed(
            f"the server would do something else ({planned}); use a plain statement on one "
            "table, without rules or views"
        )


def _changes(node: object) -> Iterator[tuple[str, str]]:
    """Yields each change in a plan: the operation and the table."""
    if isinstance(node, str):
        yield from _changes(json.loads(node))
    elif isinstance(node, Mapping):
        if node.get("Node Type") == "ModifyTable":
            table = node.get("Relation Name") or node.get("Alias") or "?"
            yield str(node.get("Operation", "?")).lower(), str(table).lower()
        yield from _changes(list(node.values()))
    elif isinstance(node, list | tuple):
        for part in node:
            if not isinstance(part, str):
                yield from _changes(part)


class PostgresConnection:
    """One connection to a server."""

    dialect: Dialect = "postgres"

    def __init__(
        self,
        url: str,
        *,
        functions: Iterable[str] = (),
        patience: float = PATIENCE_SECONDS,
        statement_seconds: float = STATEMENT_SECONDS,
    ) -> None:
        self._psycopg = driver()
        self._driver_error: type[psycopg.Error] = self._psycopg.Error
        self._statement_seconds = statement_seconds
        self._functions = frozenset(name.lower() for name in functions)
        self._own_tables: dict[str, str] = {}
        limits = {
            # The guard takes backslashes in strings literally.
            "standard_conforming_strings": "on",
            "lock_timeout": f"{int(patience * 1000)}",
            "statement_timeout": f"{int(statement_seconds * 1000)}",
            "idle_in_transaction_session_timeout": "600000",
        }
        self._limits = "; ".join(f"SET LOCAL {name} = {value}" for name, value in limits.items())
        self.label = label_of(url)
        with self._translate_errors():
            self._db = self._psycopg.connect(
                url, autocommit=True, connect_timeout=max(2, int(patience))
            )

    def begin(self, *, write: bool) -> None:
        """Opens a transaction; the server makes sure that one for reading only reads."""
        # The limits belong to the transaction: a pooler may give the next one another session.
        self.own(f"BEGIN {'READ WRITE' if write else 'READ ONLY'}; {self._limits}")

    def seal(self) -> None:
        """Makes the rest of a writing transaction read-only."""
        self.own("SET TRANSACTION READ ONLY")

    def commit(self) -> None:
        """Commits the transaction, if one is open."""
        if not self._in_transaction():
            return
        if self._db.info.transaction_status == _FAILED:
            # The server would roll it back, and report no error.
            raise FailedTransactionError(
                "a statement of the transaction has failed, so nothing was committed; a condition "
                "must not ignore the error of a query"
            )
        self.own("COMMIT")

    def rollback(self) -> None:
        """Rolls the transaction back, if one is open."""
        if self._in_transaction():
            self.own("ROLLBACK")

    def run(self, sql: str, params: Params, allowed: Allowed) -> StatementResult:
        """Runs a checked statement, and makes sure that it does only what it is allowed to."""
        text, values = numbered(sql, params)
        try:
            values = [_adapted(value) for value in values]
            if allowed.kind is StatementKind.READ:
                check_calls(allowed, self._functions, self._ask)
                return StatementResult(_by_name(*self._read(text, values)), 0)
            check_change(text, values, allowed, self._functions, self._ask)
            names, rows, changed = self._execute(text, values)
        except self._driver_error as error:
            raise self._translate(error) from error
        return StatementResult(_by_name(names, rows), changed)

    def changes_so_far(self) -> int:
        """Returns how many rows this transaction has changed, by the server's own statistics."""
        ((tracked, changes),) = self.own(_CHANGES)
        if tracked != "on":
            raise StoreError(
                f"{self.label} does not count changes, so they cannot be confirmed; "
                "the administrator can set track_counts = on"
            )
        return int(changes)

    def own(self, sql: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Runs a statement of signoff's own; without values, there may be several in the text."""
        try:
            _names, rows, _changed = self._execute(_with_numbers(sql) if params else sql, params)
        except self._driver_error as error:
            raise self._translate(error) from error
        return rows

    def can_return(self, table: str) -> bool:
        """Whether a change of this table can return its rows."""
        return bool(table)

    def has_table(self, name: str) -> bool:
        """Whether a table exists."""
        return bool(self.own("SELECT 1 WHERE to_regclass(?) IS NOT NULL", [quoted_table(name)]))

    def own_table(self, name: str) -> str | None:
        """Returns one of signoff's own tables: in its own schema if an administrator set it up."""
        if name not in self._own_tables:
            candidates = (f"{OWN_SCHEMA}.{name}", name)
            found = next((each for each in candidates if self.has_table(each)), None)
            if found is None:
                return None
            self._own_tables[name] = found
        return self._own_tables[name]

    def interrupt(self) -> None:
        """Aborts the statement that is running."""
        # The server may be gone, and the statement with it.
        with suppress(StoreError), self._translate_errors():
            self._db.cancel_safe(timeout=2.0)

    def close(self) -> None:
        """Closes the connection."""
        self._db.close()

    def is_alive(self) -> bool:
        """Whether the server answers; it may close a connection that is idle for long."""
        try:
            self._execute("SELECT 1")
        except self._driver_error:
            return False
        return True

    def _in_transaction(self) -> bool:
        return self._db.info.transaction_status in _OPEN

    def _cursor(self) -> psycopg.RawCursor[tuple[Any, ...]]:
        cursor: psycopg.RawCursor[tuple[Any, ...]] = self._psycopg.RawCursor(self._db)
        return cursor

    def _read(self, sql: str, values: Sequence[object]) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Reads rows as they arrive, until they are too many."""
        cursor, size = self._cursor(), ResultSize()
        rows = []
        # If it is closed early, the driver cancels the statement.
        with closing(cursor.stream(sql, values)) as arriving:  # type: ignore[type-var]
            for row in arriving:
                size.add(row)
                rows.append(row)
        return _names(cursor), rows

    def _ask(self, sql: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        return self._read(sql, values)[1]

    def _execute(
        self, sql: str, values: Sequence[object] = ()
    ) -> tuple[list[str], list[tuple[Any, ...]], int]:
        """Returns the names of columns, the rows, and how many rows the server counted."""
        cursor = self._cursor()
        cursor.execute(sql, values or None, prepare=False)
        rows = cursor.fetchall() if cursor.description else []
        size = ResultSize()
        for row in rows:
            size.add(row)
        return _names(cursor), rows, max(cursor.rowcount, 0)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except self._driver_error as error:
            raise self._translate(error) from error

    def _translate(self, error: psycopg.Error) -> StoreError:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        code = error.sqlstate or ""
        if code in _BUSY:
            return StoreBusy(f"{self.label} is locked by another session ({reason}); try again")
        if code == _ABORTED:
            return StoreError(f"the statement took more than {self._statement_seconds:g} seconds")
        if code == _DENIED:
            # The server's reason names the table, sequence or schema.
            return StoreError(f"{self.label}: {reason}", remedy=SetUpDatabase())
        psycopg = self._psycopg
        is_lost = not code and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        if code.startswith(("08", "57P")) or is_lost:
            return WriteFailed(f"{self.label} cannot be used ({reason}); check that it runs")
        if code.startswith("53"):
            return WriteFailed(f"the server is out of space ({reason}); free some, then resume")
        return StoreError(f"{self.label}: {reason}")


def numbered(sql: str, params: Params) -> tuple[str, list[object]]:
    """Returns a statement with `$1` instead of each `:name`, and the values in that order."""
    if not isinstance(params, Mapping):
        return sql, list(params)
    order: dict[str, int] = {}
    pieces, last = [], 0
    for match in named_parameters(sql, "postgres"):
        number = order.setdefault(match[1], len(order) + 1)
        pieces += [sql[last : match.start()], f"${number}"]
        last = match.end()
    if missing := [name for name in order if name not in params]:
        raise StoreError(f"there is no value for :{missing[0]}")
    return "".join([*pieces, sql[last:]]), [params[name] for name in order]


def _with_numbers(sql: str) -> str:
    """Returns a statement of signoff's own with `$1` and so on for each `?`."""
    first, *others = sql.split("?")
    return first + "".join(f"${number}{text}" for number, text in enumerate(others, start=1))


def _adapted(value: object) -> object:
    """Returns a value as psycopg takes it: mappings as JSON, while lists are arrays."""
    if not isinstance(value, dict):
        return value
    from psycopg.types.json import Jsonb

    return Jsonb(value)


def _names(cursor: psycopg.RawCursor[Any]) -> list[str]:
    return [column.name for column in cursor.description or ()]


def _by_name(names: list[str], rows: Iterable[tuple[Any, ...]]) -> tuple[Row, ...]:
    return tuple(dict(zip(names, row, strict=True)) for row in rows)
