"""A connection to the user's PostgreSQL database; the server enforces the guard's verdicts.

PostgreSQL has no authorizer. Instead, reads run in READ ONLY transactions. Before a change, the
server explains its plan, which must change the allowed table and no other. And every statement
uses the protocol that accepts one statement at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from signoff._extras import install_command
from signoff.errors import ConfigError, NotAllowed, StoreBusy, StoreError, WriteFailed
from signoff.guarded_db.lexing import named_parameters
from signoff.guarded_db.ports import StatementResult
from signoff.guarded_db.verdict import Allowed, Dialect, Params, StatementKind

if TYPE_CHECKING:
    import psycopg

PATIENCE_SECONDS = 5.0
"""How long to wait for a connection, and for a lock of another session."""

STATEMENT_SECONDS = 30.0
"""The server aborts a statement that takes longer."""

_BUSY = frozenset({"55P03", "40P01", "40001"})
"""Lock not available, deadlock, could not serialize: another session is in the way."""

_ABORTED = "57014"


class PostgresConnection:
    """One connection to a server."""

    dialect: Dialect = "postgres"

    def __init__(
        self,
        url: str,
        *,
        patience: float = PATIENCE_SECONDS,
        statement_seconds: float = STATEMENT_SECONDS,
    ) -> None:
        psycopg = driver()
        self._statement_seconds = statement_seconds
        self.label = label_of(url)
        settings = {
            # The guard takes backslashes in strings literally.
            "standard_conforming_strings": "on",
            "lock_timeout": f"{int(patience * 1000)}",
            "statement_timeout": f"{int(statement_seconds * 1000)}",
            "idle_in_transaction_session_timeout": "600000",
        }
        with self._translate_errors():
            self._db = psycopg.connect(
                url,
                autocommit=True,
                cursor_factory=psycopg.RawCursor,
                connect_timeout=max(2, int(patience)),
                options=" ".join(f"-c {name}={value}" for name, value in settings.items()),
            )

    def begin(self, *, write: bool) -> None:
        """Opens a transaction; the server makes sure that one for reading only reads."""
        self.own("BEGIN" if write else "BEGIN READ ONLY")

    def seal(self) -> None:
        """Makes the rest of a writing transaction read-only."""
        self.own("SET TRANSACTION READ ONLY")

    def commit(self) -> None:
        """Commits the transaction."""
        self.own("COMMIT")

    def rollback(self) -> None:
        """Rolls the transaction back, if one is open."""
        if self._db.closed or self._db.info.transaction_status == 0:
            return
        with self._translate_errors():
            self._db.rollback()

    def run(self, sql: str, params: Params, allowed: Allowed) -> StatementResult:
        """Runs a checked statement, and makes sure that it does only what it is allowed to."""
        text, values = numbered(sql, params)
        if allowed.kind is not StatementKind.READ:
            self._check_plan(text, values, allowed)
        with self._translate_errors(), self._db.cursor() as cursor:
            cursor.execute(text, values, prepare=True)
            names = [column.name for column in cursor.description or ()]
            found = cursor.fetchall() if names else []
            rows = tuple(dict(zip(names, row, strict=True)) for row in found)
            return StatementResult(
                rows, 0 if allowed.kind is StatementKind.READ else max(cursor.rowcount, 0)
            )

    def own(self, sql: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Runs a statement of signoff's own."""
        for number in range(1, len(params) + 1):
            sql = sql.replace("?", f"${number}", 1)
        with self._translate_errors(), self._db.cursor() as cursor:
            cursor.execute(sql, list(params) or None)
            return cursor.fetchall() if cursor.description else []

    def has_table(self, name: str) -> bool:
        """Whether a table exists."""
        return bool(self.own("SELECT 1 WHERE to_regclass(?) IS NOT NULL", [name]))

    def interrupt(self) -> None:
        """Aborts the statement that is running."""
        # The server may be gone, and the statement with it.
        with suppress(StoreError), self._translate_errors():
            self._db.cancel_safe(timeout=2.0)

    def close(self) -> None:
        """Closes the connection."""
        self._db.close()

    def _check_plan(self, sql: str, values: Sequence[object], allowed: Allowed) -> None:
        """Asks the server what a statement would change, without running it."""
        with self._translate_errors(), self._db.cursor() as cursor:
            text = f"EXPLAIN (FORMAT JSON, COSTS OFF) {sql}"
            plan = cursor.execute(text, values, prepare=True).fetchone()
        changes = set(_changes(plan))
        if changes != {(allowed.kind.value, allowed.table)}:
            planned = ", ".join(sorted(" ".join(change) for change in changes)) or "nothing"
            raise NotAllowed(
                f"the server would do something else ({planned}); use a plain statement on one "
                "table, without rules or views"
            )

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        psycopg = driver()
        try:
            yield
        except psycopg.Error as error:
            raise self._translate(error) from error

    def _translate(self, error: psycopg.Error) -> StoreError:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        code = error.sqlstate or ""
        if code in _BUSY:
            return StoreBusy(f"{self.label} is locked by another session ({reason}); try again")
        if code == _ABORTED:
            return StoreError(f"the statement took more than {self._statement_seconds:g} seconds")
        if code.startswith(("08", "57P")) or not code:
            return WriteFailed(f"{self.label} cannot be used ({reason}); check that it runs")
        if code.startswith("53"):
            return WriteFailed(f"the server is out of space ({reason}); free some, then resume")
        return StoreError(f"{self.label}: {reason}")


def driver() -> Any:
    """Returns the psycopg module; raises `ConfigError` if it is not installed."""
    try:
        import psycopg
    except ImportError as error:
        raise ConfigError(
            f"PostgreSQL needs psycopg, which is not installed: {install_command('postgres')}"
        ) from error
    return psycopg


def label_of(url: str) -> str:
    """Returns a description of the database at an address, without its password."""
    from psycopg.conninfo import conninfo_to_dict

    psycopg = driver()
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error as error:
        raise ConfigError(
            "the database's address cannot be read; write postgresql://user@host/name"
        ) from error
    return f"database {parts.get('dbname', '')} on {parts.get('host') or 'this machine'}"


def numbered(sql: str, params: Params) -> tuple[str, list[object]]:
    """Returns a statement with `$1` instead of each `:name`, and the values in that order."""
    if not isinstance(params, Mapping):
        return sql, list(params)
    order: dict[str, int] = {}
    pieces, last = [], 0
    for match in named_parameters(sql, "postgres"):
        if match[1] not in params:
            raise StoreError(f"there is no value for :{match[1]}")
        number = order.setdefault(match[1], len(order) + 1)
        pieces += [sql[last : match.start()], f"${number}"]
        last = match.end()
    return "".join([*pieces, sql[last:]]), [params[name] for name in order]


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
