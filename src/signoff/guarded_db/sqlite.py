"""A connection to the user's SQLite database, held to the verdict by an authorizer."""

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
from signoff.guarded_db.ports import Ran
from signoff.guarded_db.sqlite_schema import consequences
from signoff.guarded_db.verdict import Allowed, Dialect, Params, StatementKind
from signoff.sqlite_errors import translate_errors

PATIENCE_SECONDS = 5.0
"""How long to wait for somebody else's lock."""

STATEMENT_SECONDS = 30.0
"""A statement that takes longer is broken off."""

_STEPS_BETWEEN_LOOKS = 20_000
"""How many of SQLite's own steps pass between two looks at the clock; about a millisecond."""


_DENIED = re.compile("not authorized|authorization denied|is prohibited")
"""How SQLite says that the authorizer said no, where its error code does not."""


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
        self.place = str(path)
        self._functions = functions_for(frozenset(name.lower() for name in functions))
        self._statement_seconds = statement_seconds
        self._deadline = 0.0
        self._sealed = False
        self._schema_version = -1
        if not path.is_file():
            raise UsageError(f"there is no database at {path}; create it, or mend the address")
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
        """Opens a transaction; one that writes has its lock from the start on."""
        self._sealed = not write
        with self._unguarded():
            self._db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            self._look_at_schema()

    def seal(self) -> None:
        """Makes the rest of a writing transaction read-only."""
        self._sealed = True

    def commit(self) -> None:
        """Ends the transaction, keeping what it did."""
        with self._unguarded():
            self._db.execute("COMMIT")

    def rollback(self) -> None:
        """Ends the transaction, if one is open, undoing what it did."""
        if self._db.in_transaction:
            with self._unguarded():
                self._db.execute("ROLLBACK")

    def run(self, sql: str, params: Params, allowed: Allowed) -> Ran:
        """Runs a judged statement, held to what it is allowed."""
        held = Allowed(StatementKind.READ) if self._sealed else allowed
        bound = dict(params) if isinstance(params, Mapping) else tuple(params)
        with translate_errors(self.path), self._guarded(held):
            cursor = self._db.execute(sql, bound)
            names = [column[0] for column in cursor.description or ()]
            rows = tuple(dict(zip(names, row, strict=True)) for row in cursor.fetchall())
            return Ran(rows, max(cursor.rowcount, 0))

    def own(self, sql: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Runs a statement of signoff's own."""
        with self._unguarded():
            return self._db.execute(sql, tuple(params)).fetchall()

    def interrupt(self) -> None:
        """Breaks off whatever statement is running."""
        self._db.interrupt()

    def close(self) -> None:
        """Closes the connection."""
        self._db.close()

    def _set_up(self) -> None:
        with translate_errors(self.path):
            # Foreign keys are off in SQLite unless asked for, and would not be checked.
            self._db.execute("PRAGMA foreign_keys = ON")
            # Somebody else may be using the database just now, or its folder be read-only: then
            # it stays as it is, and commits take longer.
            with suppress(sqlite3.OperationalError):
                self._db.execute("PRAGMA journal_mode = WAL")
            self._look_at_schema()
        self._db.set_progress_handler(self._out_of_time, _STEPS_BETWEEN_LOOKS)

    def _look_at_schema(self) -> None:
        """Reads the schema when it has changed, which other programs may do at any time."""
        (version,) = self._db.execute("PRAGMA schema_version").fetchone()
        if version == self._schema_version:
            return
        self._consequences = consequences(self._db)
        # A search index, or a function that gives rows, is opened by statements of its own,
        # which the authorizer would refuse.
        for name in (*self._consequences.virtual, "json_each", "json_tree"):
            quoted = name.replace('"', '""')
            with suppress(sqlite3.OperationalError):
                self._db.execute(f'SELECT 1 FROM "{quoted}" LIMIT 0')  # noqa: S608 - a quoted name
        self._schema_version = version

    def _out_of_time(self) -> bool:
        return bool(self._deadline) and monotonic() > self._deadline

    @contextmanager
    def _guarded(self, allowed: Allowed) -> Iterator[None]:
        # Setting an authorizer makes SQLite compile again what it had compiled under another.
        self._db.set_authorizer(
            authorizer(allowed, functions=self._functions, consequences=self._consequences)
        )
        self._deadline = monotonic() + self._statement_seconds
        try:
            yield
        except sqlite3.DatabaseError as error:
            explained = self._explained(error)
            if explained is None:
                raise
            raise explained from error
        except (sqlite3.Warning, sqlite3.InterfaceError, OverflowError) as error:
            raise StoreError(f"the statement cannot be run: {error}") from error
        finally:
            self._deadline = 0.0
            self._db.set_authorizer(None)

    def _explained(self, error: sqlite3.DatabaseError) -> OperatorError | None:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_AUTH or _DENIED.search(str(error)):
            return NotAllowed(f"the database refused the statement: {error}")
        if code == sqlite3.SQLITE_INTERRUPT:
            return StoreError(f"the statement took more than {self._statement_seconds:g} seconds")
        return None

    @contextmanager
    def _unguarded(self) -> Iterator[None]:
        with translate_errors(self.path):
            yield
