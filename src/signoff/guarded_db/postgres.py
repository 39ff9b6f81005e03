"""A connection to the user's PostgreSQL database, held to the verdict by the server itself.

PostgreSQL has no authorizer. What stands in for it: reads run in READ ONLY transactions; a
change is first explained by the server, and the plan must change the allowed table and no
other; and every statement goes through the protocol that takes one statement at a time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from signoff._extras import install_command
from signoff.errors import ConfigError, NotAllowed, StoreBusy, StoreError, WriteFailed
from signoff.guarded_db.lexing import named_places
from signoff.guarded_db.ports import Ran
from signoff.guarded_db.verdict import Allowed, Dialect, Params, StatementKind

if TYPE_CHECKING:
    import psycopg

PATIENCE_SECONDS = 5.0
"""How long to wait for a connection, and for somebody else's lock."""

STATEMENT_SECONDS = 30.0
"""A statement that takes longer is broken off by the server."""

_BUSY = frozenset({"55P03", "40P01", "40001"})
"""Not available, deadlock, could not serialise: somebody else was in the way."""

_BROKEN_OFF = "57014"


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
        self.place = shown(url)
        settings = {
            # Backslashes mean themselves, as the guard reads them.
            "standard_conforming_strings": "on",
            "lock_timeout": f"{int(patience * 1000)}",
            "statement_timeout": f"{int(statement_seconds * 1000)}",
            "idle_in_transaction_session_timeout": "600000",
        }
        with self._translated():
            self._db = psycopg.connect(
                url,
                autocommit=True,
                cursor_factory=psycopg.RawCursor,
                connect_timeout=max(2, int(patience)),
                options=" ".join(f"-c {name}={value}" for name, value in settings.items()),
            )

    def begin(self, *, write: bool) -> None:
        """Opens a transaction; one that only reads is held to that by the server."""
        self.own("BEGIN" if write else "BEGIN READ ONLY")

    def seal(self) -> None:
        """Makes the rest of a writing transaction read-only."""
        self.own("SET TRANSACTION READ ONLY")

    def commit(self) -> None:
        """Ends the transaction, keeping what it did."""
        self.own("COMMIT")

    def rollback(self) -> None:
        """Ends the transaction, if one is open, undoing what it did."""
        if self._db.closed or self._db.info.transaction_status == 0:
            return
        with self._translated():
            self._db.rollback()

    def run(self, sql: str, params: Params, allowed: Allowed) -> Ran:
        """Runs a judged statement, held to what it is allowed."""
        text, values = numbered(sql, params)
        if allowed.kind is not StatementKind.READ:
            self._check_plan(text, values, allowed)
        with self._translated(), self._db.cursor() as cursor:
            cursor.execute(text, values, prepare=True)
            names = [column.name for column in cursor.description or ()]
            found = cursor.fetchall() if names else []
            rows = tuple(dict(zip(names, row, strict=True)) for row in found)
            return Ran(rows, 0 if allowed.kind is StatementKind.READ else max(cursor.rowcount, 0))

    def own(self, sql: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Runs a statement of signoff's own."""
        for number in range(1, len(params) + 1):
            sql = sql.replace("?", f"${number}", 1)
        with self._translated(), self._db.cursor() as cursor:
            cursor.execute(sql, list(params) or None)
            return cursor.fetchall() if cursor.description else []

    def interrupt(self) -> None:
        """Breaks off whatever statement is running."""
        # The server may be gone, and the statement with it.
        with suppress(StoreError), self._translated():
            self._db.cancel_safe(timeout=2.0)

    def close(self) -> None:
        """Closes the connection."""
        self._db.close()

    def _check_plan(self, sql: str, values: Sequence[object], allowed: Allowed) -> None:
        """Lets the server say what a statement would change, without running it."""
        with self._translated(), self._db.cursor() as cursor:
            text = f"EXPLAIN (FORMAT JSON, COSTS OFF) {sql}"
            plan = cursor.execute(text, values, prepare=True).fetchone()
        changes = set(_changes(plan))
        if changes != {(allowed.kind.value, allowed.table)}:
            did = ", ".join(sorted(" ".join(change) for change in changes)) or "nothing"
            raise NotAllowed(
                f"the server reads the statement differently (as: {did}); use a plain statement "
                f"on one table, without rules or views in between"
            )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        psycopg = driver()
        try:
            yield
        except psycopg.Error as error:
            raise self._explained(error) from error

    def _explained(self, error: psycopg.Error) -> StoreError:
        said = str(error).strip().splitlines()[:1] or [type(error).__name__]
        code = error.sqlstate or ""
        if code in _BUSY:
            return StoreBusy(f"{self.place} is locked by somebody else ({said[0]}); try again")
        if code == _BROKEN_OFF:
            return StoreError(f"the statement took more than {self._statement_seconds:g} seconds")
        if code.startswith(("08", "57P")) or not code:
            return WriteFailed(f"{self.place} cannot be used ({said[0]}); check that it runs")
        if code.startswith("53"):
            return WriteFailed(f"the server is out of room ({said[0]}); free some, then resume")
        return StoreError(f"{self.place}: {said[0]}")


def driver() -> Any:
    """Returns the psycopg module, or says how to install it."""
    try:
        import psycopg
    except ImportError as error:
        raise ConfigError(
            f"PostgreSQL needs psycopg, which is not installed: {install_command('postgres')}"
        ) from error
    return psycopg


def shown(url: str) -> str:
    """Returns which database an address means, without its password."""
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
    """Returns a statement with `$1` in place of each `:name`, and the values in that order."""
    if not isinstance(params, Mapping):
        return sql, list(params)
    order: dict[str, int] = {}
    pieces, last = [], 0
    for found in named_places(sql, "postgres"):
        if found[1] not in params:
            raise StoreError(f"no value is given for :{found[1]}")
        number = order.setdefault(found[1], len(order) + 1)
        pieces += [sql[last : found.start()], f"${number}"]
        last = found.end()
    return "".join([*pieces, sql[last:]]), [params[name] for name in order]


def _changes(node: object) -> Iterator[tuple[str, str]]:
    """Finds each change in a plan: what is done, and to which table."""
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
