"""A connection to the user's SQLite database; an authorizer enforces the guard's verdicts."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

from signoff.errors import NotAllowed, OperatorError, StoreError, UsageError
from signoff.guarded_db.authorizer import authorizer, functions_for
from signoff.guarded_db.ports import StatementResult
from signoff.guarded_db.sqlite_schema import consequences
from signoff.guarded_db.verdict import Allowed, Dialect, Params, StatementKind
from signoff.sqlite_errors import translate_errors

PATIENCE_SECONDS = 5.0
"""How long to wait for a lock of another process."""

STATEMENT_SECONDS = 30.0
"""A statement that takes longer is aborted."""

_STEPS_PER_CLOCK_CHECK = 20_000
"""SQLite's own steps between two checks of the clock; about a millisecond."""

_DENIED = re.compile("not authorized|authorization denied|is prohibited")
"""SQLite's messages after a denial by the authorizer that has no error code of its own."""


class SqliteConnection:
    """One connection to a database file that exists."""

    dialect: Dialect = "sqlite"

    def __init__(
        self,
        path: Path,
        *,
        functions: Iterable[str] = (),
        patience: float = PATIENCE_SECONDS,
        statement_seconds: float = STATEMENT_SECONDS,
    ) -> None:
        self.path = path
        self.label = str(path)
        self._functions = functions_for(frozenset(name.lower() for name in functions))
        self._statement_seconds = statement_seconds
        self._deadline = 0.0
        self._sealed = False
        self._schema_version = -1
        if not path.is_file():
            raise UsageError(f"there is no database at {path}; create it, or fix the address")
        with translate_errors(path):
            self._db = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=patience
            )
        try:
            self._set_up()
        except BaseException:
            self._db.close()
            raise

    def begin(self, *, write: bool) -> None:
        """Opens a transaction; one that writes locks the database from the start."""
        self._sealed = not write
        with translate_errors(self.path):
            self._db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            self._update_schema()

    def seal(self) -> None:
        """Makes the rest of a writing transaction read-only."""
        self._sealed = True

    def commit(self) -> None:
        """Commits the transaction."""
        with translate_errors(self.path):
            self._db.execute("COMMIT")

    def rollback(self) -> None:
        """Rolls the transaction back, if one is open."""
        if self._db.in_transaction:
            with translate_errors(self.path):
                self._db.execute("ROLLBACK")

    def run(self, sql: str, params: Params, allowed: Allowed) -> StatementResult:
        """Runs a checked statement, and makes sure that it does only what it is allowed to."""
        allowed = Allowed(StatementKind.READ) if self._sealed else allowed
        bound = dict(params) if isinstance(params, Mapping) else tuple(params)
        with translate_errors(self.path), self._guarded(allowed):
            cursor = self._db.execute(sql, bound)
            names = [column[0] for column in cursor.description or ()]
            rows = tuple(dict(zip(names, row, strict=True)) for row in cursor.fetchall())
            return StatementResult(rows, max(cursor.rowcount, 0))

    def own(self, sql: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Runs a statement of signoff's own."""
        with translate_errors(self.path):
            return self._db.execute(sql, tuple(params)).fetchall()

    def has_table(self, name: str) -> bool:
        """Whether a table exists."""
        return bool(self.own("SELECT 1 FROM sqlite_master WHERE name = ?", [name]))

    def interrupt(self) -> None:
        """Aborts the statement that is running."""
        self._db.interrupt()

    def close(self) -> None:
        """Closes the connection."""
        self._db.close()

    def _set_up(self) -> None:
        with translate_errors(self.path):
            # SQLite does not check foreign keys by default.
            self._db.execute("PRAGMA foreign_keys = ON")
            # This fails while another process uses the database, or if its folder is read-only.
            # Without it everything works, but commits take longer.
            with suppress(sqlite3.OperationalError):
                self._db.execute("PRAGMA journal_mode = WAL")
            self._update_schema()
        self._db.set_progress_handler(self._is_out_of_time, _STEPS_PER_CLOCK_CHECK)

    def _update_schema(self) -> None:
        """Reads the schema if it has changed; other programs may change it at any time."""
        (version,) = self._db.execute("PRAGMA schema_version").fetchone()
        if version == self._schema_version:
            return
        self._consequences = consequences(self._db)
        # SQLite opens a search index, or a function that returns rows, with statements of its
        # own, which the authorizer would refuse. So they are opened here, without it.
        for name in (*self._consequences.virtual, "json_each", "json_tree"):
            quoted = name.replace('"', '""')
            with suppress(sqlite3.OperationalError):
                self._db.execute(f'SELECT 1 FROM "{quoted}" LIMIT 0')  # noqa: S608 - a quoted name
        self._schema_version = version

    def _is_out_of_time(self) -> bool:
        return bool(self._deadline) and monotonic() > self._deadline

    @contextmanager
    def _guarded(self, allowed: Allowed) -> Iterator[None]:
        # A new authorizer makes SQLite compile cached statements again, and so ask for each.
        self._db.set_authorizer(
            authorizer(allowed, functions=self._functions, consequences=self._consequences)
        )
        self._deadline = monotonic() + self._statement_seconds
        try:
            yield
        except sqlite3.DatabaseError as error:
            if (translated := self._translate(error)) is None:
                raise
            raise translated from error
        except (sqlite3.Warning, sqlite3.InterfaceError, OverflowError) as error:
            raise StoreError(f"the statement cannot be run: {error}") from error
        finally:
            self._deadline = 0.0
            self._db.set_authorizer(None)

    def _translate(self, error: sqlite3.DatabaseError) -> OperatorError | None:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_AUTH or _DENIED.search(str(error)):
            return NotAllowed(f"the database refused the statement: {error}")
        if code == sqlite3.SQLITE_INTERRUPT:
            return StoreError(f"the statement took more than {self._statement_seconds:g} seconds")
        return None
