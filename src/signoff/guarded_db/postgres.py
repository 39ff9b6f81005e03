"""A connection to the user's PostgreSQL database; the server enforces the guard's verdicts.

PostgreSQL has no authorizer. Instead, reads run in READ ONLY transactions, and the server judges a
change before it runs (`postgres_judgments`). Every statement uses the protocol that accepts one
statement at a time.

A connection of our own has its limits as settings of the session, in which a transaction only
reads unless it says otherwise. A connection pooler, or a pool of the program, may give each
transaction another session: there the limits are set in each transaction, and nothing is prepared.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from signoff.errors import StoreBusy, StoreError, WriteFailed
from signoff.guarded_db.ports import FailedTransactionError, StatementResult, given_back
from signoff.guarded_db.postgres_grants import missing_grants
from signoff.guarded_db.postgres_judgments import SCHEMA_VERSION, Judgments, SchemaVersion
from signoff.guarded_db.postgres_statements import ServerStatements
from signoff.guarded_db.postgres_values import adapted, json_positions, numbered, with_numbers
from signoff.guarded_db.verdict import (
    OWN_SCHEMA,
    Allowed,
    Dialect,
    Params,
    StatementKind,
    quoted_table,
)
from signoff.postgres_driver import driver, label_of
from signoff.remedies import SetUpDatabase

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


class PostgresConnection:
    """One connection to a server, our own or one that the user has opened."""

    dialect: Dialect = "postgres"

    def __init__(
        self,
        database: str | psycopg.Connection[Any],
        *,
        functions: Iterable[str] = (),
        patience: float = PATIENCE_SECONDS,
        statement_seconds: float = STATEMENT_SECONDS,
        give_back: Callable[[], Any] | None = None,
    ) -> None:
        """`give_back` is called in the end with a connection of the user, which else is closed."""
        self._driver_error: type[psycopg.Error] = driver().Error
        self._statement_seconds = statement_seconds
        self._judgments = Judgments(functions)
        self._versions: dict[str, SchemaVersion] = {}
        self._targets: set[str] = set()
        """Tables that were changed before."""
        self._expected: tuple[str, ...] = ()
        self._json: dict[str, frozenset[int]] = {}
        self._own_tables: dict[str, str] = {}
        self._settings = {
            # The guard takes backslashes in strings literally.
            "standard_conforming_strings": "on",
            "lock_timeout": f"{int(patience * 1000)}",
            "statement_timeout": f"{int(statement_seconds * 1000)}",
            "idle_in_transaction_session_timeout": "600000",
        }
        self._give_back = give_back
        self._borrowed = not isinstance(database, str)
        if not isinstance(database, str):
            self._borrow(database)
        else:
            self.label = label_of(database)
            with self._translate_errors():
                self._db, self._shared = self._connect(database, patience)
        self._statements = ServerStatements(self._db, keep_plans=not self._shared)
        self._pgconn = self._db.pgconn
        self._poll: select.poll | None = None
        local = [f"SET LOCAL {name} = {value}" for name, value in self._settings.items()]
        self._local_settings = "".join(f"; {each}" for each in local) if self._shared else ""

    def begin(self, *, write: bool) -> None:
        """Opens a transaction; the server makes sure that one for reading only reads."""
        self._statements.had_stale_plan = False
        self._versions.clear()
        self._expected = ()
        if self._borrowed and self._give_back is None:
            raise given_back()
        if not (write or self._shared):
            # Each statement is a transaction of its own, which can only read.
            return
        mode = "READ WRITE" if write else "READ ONLY"
        self._statements.defer(f"BEGIN {mode}{self._local_settings}")

    def expect(self, targets: Iterable[str]) -> None:
        """Looks at the tables that will be changed together with the next statement."""
        # One that the server cannot look up has to fail together with its own statement.
        self._expected = tuple(self._targets.intersection(targets))

    def seal(self) -> None:
        """Makes the rest of a writing transaction read-only."""
        # If nothing is read any more, it is not sent at all.
        self._statements.defer("SET TRANSACTION READ ONLY")

    def commit(self) -> None:
        """Commits the transaction, if one is open."""
        self._statements.discard_deferred()
        if not self._in_transaction():
            return
        if self._pgconn.transaction_status == _FAILED:
            # The server would roll it back, and report no error.
            raise FailedTransactionError(
                "a statement of the transaction has failed, so nothing was committed; a condition "
                "must not ignore the error of a query"
            )
        self.own("COMMIT")

    def rollback(self) -> None:
        """Rolls the transaction back, if one is open."""
        self._statements.discard_deferred()
        if self._in_transaction():
            self.own("ROLLBACK")

    def had_stale_plan(self) -> bool:
        """Whether the last transaction failed because of a plan, which is forgotten by now."""
        return self._statements.had_stale_plan

    def run(self, sql: str, params: Params, allowed: Allowed) -> StatementResult:
        """Runs a checked statement, and makes sure that it does only what it is allowed to."""
        text, values = numbered(sql, params)
        try:
            values = adapted(values, lambda: self._json_positions(text))
            if allowed.kind is StatementKind.READ:
                return self._read(text, values, allowed)
            return self._change(text, values, allowed)
        except self._driver_error as error:
            raise self._translate(error, allowed) from error

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
        """Runs a statement of signoff's own."""
        try:
            if not params:
                return self._statements.command(sql)
            targets, self._expected = self._expected, ()
            lookups = [(SCHEMA_VERSION, [target]) for target in targets]
            rows, *found = self._statements.own((with_numbers(sql), params), *lookups)
            for target, ((functions, table),) in zip(targets, found, strict=True):
                self._versions[target] = SchemaVersion(functions, table)
            return rows
        except self._driver_error as error:
            raise self._translate(error) from error

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
        """Closes the connection, or gives it back as it was."""
        if not self._borrowed:
            self._db.close()
        if self._give_back is None:
            return
        give_back, self._give_back = self._give_back, None
        with suppress(StoreError):
            self.rollback()
            self._db.autocommit = self._autocommit
        give_back()

    def seems_open(self) -> bool:
        """Whether the server has not closed the connection, as far as this side can tell."""
        if self._db.closed:
            return False
        if self._poll is None:
            self._poll = select.poll()
            self._poll.register(self._db.fileno(), select.POLLIN)
        # An idle connection has nothing to read, unless the server has ended it.
        return not self._poll.poll(0)

    def _connect(self, url: str, patience: float) -> tuple[psycopg.Connection[Any], bool]:
        """Returns a connection, and whether a pooler shares its sessions with others."""
        psycopg = driver()
        settings = {**self._settings, "default_transaction_read_only": "on"}
        given = psycopg.conninfo.conninfo_to_dict(url).get("options") or ""
        options = [str(given), *(f"-c {name}={value}" for name, value in settings.items())]
        common = {
            "autocommit": True,
            "cursor_factory": psycopg.RawCursor,
            "connect_timeout": max(2, int(patience)),
        }
        try:
            db = psycopg.connect(url, options=" ".join(options).strip(), **common)
        except psycopg.OperationalError as error:
            # Poolers refuse settings that they cannot keep apart for each client.
            if "startup parameter" not in str(error):
                raise
            return psycopg.connect(url, prepare_threshold=None, **common), True
        # Others ignore them.
        shown = db.execute("SHOW default_transaction_read_only").fetchone()
        if shown != ("on",):
            db.prepare_threshold = None
            return db, True
        return db, False

    def _borrow(self, database: psycopg.Connection[Any]) -> None:
        psycopg = driver()
        self.label = f"database {database.info.dbname} on {database.info.host or 'this machine'}"
        self._shared = True
        self._give_back = self._give_back or database.close
        with self._translate_errors():
            if database.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                database.rollback()
            self._autocommit = database.autocommit
            database.autocommit = True
        self._db = database

    def _in_transaction(self) -> bool:
        return self._pgconn.transaction_status in _OPEN

    def _query(self, sql: str, params: Sequence[object]) -> list[tuple[Any, ...]]:
        return self._statements.own((sql, params))[0]

    def _read(self, sql: str, values: Sequence[object], allowed: Allowed) -> StatementResult:
        self._judgments.check_read(sql, allowed, self._query)
        return StatementResult(self._statements.read(sql, values).by_name(), 0)

    def _change(self, sql: str, values: Sequence[object], allowed: Allowed) -> StatementResult:
        version = self._version(allowed.target)
        if not self._judgments.check_change(sql, values, allowed, version, self._query):
            self._statements.forget(sql)
        found = self._statements.run(sql, values)
        changed = 0 if allowed.kind is StatementKind.LOCK else found.changed
        return StatementResult(found.by_name(), changed)

    def _version(self, target: str) -> SchemaVersion:
        """Returns the state of the schema in this transaction."""
        if target not in self._versions:
            ((functions, table),) = self._query(SCHEMA_VERSION, [target])
            self._versions[target] = SchemaVersion(functions, table)
            self._targets.add(target)
        return self._versions[target]

    def _json_positions(self, sql: str) -> frozenset[int]:
        if sql not in self._json:
            self._json[sql] = json_positions(self._db, sql)
        return self._json[sql]

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except self._driver_error as error:
            raise self._translate(error) from error

    def _translate(self, error: psycopg.Error, allowed: Allowed | None = None) -> StoreError:
        reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
        code = error.sqlstate or ""
        if code in _BUSY:
            return StoreBusy(f"{self.label} is locked by another session ({reason}); try again")
        if code == _ABORTED:
            return StoreError(f"the statement took more than {self._statement_seconds:g} seconds")
        if code == _DENIED:
            return self._denied(reason, allowed)
        psycopg = driver()
        is_lost = not code and isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        if code.startswith(("08", "57P")) or is_lost:
            return WriteFailed(f"{self.label} cannot be used ({reason}); check that it runs")
        if code.startswith("53"):
            return WriteFailed(f"the server is out of space ({reason}); free some, then resume")
        return StoreError(f"{self.label}: {reason}")

    def _denied(self, reason: str, allowed: Allowed | None) -> StoreError:
        """Returns an error that names the grants that are missing."""
        grants: list[str] = []
        # The transaction has failed, and only a new one can read the catalog.
        with suppress(driver().Error):
            self._statements.command("ROLLBACK")
            grants = missing_grants(self._query, allowed)
        how = f"; the owner can run: {'; '.join(grants)}" if grants else ""
        return StoreError(f"{self.label}: {reason}{how}", remedy=SetUpDatabase())
