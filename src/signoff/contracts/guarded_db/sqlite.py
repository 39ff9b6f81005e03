"""A connection to the user's SQLite database; an authorizer enforces the guard's verdicts.

SQLite asks the authorizer when it compiles a statement, and the compiled statement is reused for
the same text. So one authorizer stays installed, which answers by the verdict of the statement that
is being compiled, and the text that SQLite gets begins with the number of that verdict. What was
compiled under one verdict is never run under another. A transaction for reading is committed only
if SQLite has counted no change in it. `PRAGMA query_only` would do the same, but SQLite compiles
every statement again each time it is switched.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

from signoff.contracts.guarded_db.ports import (
    MOST_RESULT_BYTES,
    ResultSize,
    Row,
    StatementResult,
    result_too_large,
)
from signoff.contracts.guarded_db.verdict import (
    ALLOWED,
    OWN_TABLES,
    Allowed,
    Dialect,
    Params,
    StatementKind,
)
from signoff.core.errors import NotAllowed, OperatorError, StoreError, UsageError
from signoff.store.databases import translate_errors

PATIENCE_SECONDS = 5.0
"""How long to wait for a lock of another process."""

STATEMENT_SECONDS = 30.0
"""A statement that takes longer is aborted."""

_HAS_TABLE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? COLLATE NOCASE"

_STEPS_PER_CLOCK_CHECK = 20_000
"""SQLite's own steps between two checks of the clock; about a millisecond."""

_DENIED = re.compile("not authorized|authorization denied|is prohibited")
"""SQLite's messages after a denial by the authorizer that has no error code of its own."""


# The second line of defense on SQLite: it asks for permission before it does anything.
#
# SQLite calls the authorizer while it compiles a statement, with what the statement really does.
# So it does not matter how the text was written or how our parser understood it.


Authorizer: TypeAlias = Callable[[int, str | None, str | None, str | None, str | None], int]

_READS = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
_WRITES = {
    StatementKind.READ: frozenset[int](),
    # An INSERT with ON CONFLICT DO UPDATE is both.
    StatementKind.INSERT: frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE}),
    StatementKind.UPDATE: frozenset({sqlite3.SQLITE_UPDATE}),
    StatementKind.DELETE: frozenset({sqlite3.SQLITE_DELETE}),
}
_SEARCH_PRAGMA = ("data_version", None)
"""The PRAGMA that full-text indexes use internally; it changes nothing."""
_BY_FOREIGN_KEYS = frozenset({sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
_CHANGES = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})


# Finds out which tables SQLite changes by itself when a statement changes a table.
#
# SQLite asks the authorizer about these changes as if the statement made them. So it has to know
# which ones follow from the schema: the tables behind search indexes, and rows that change because
# of a foreign key.


_SHADOWS = "SELECT name FROM pragma_table_list WHERE type = 'shadow'"
_VIRTUAL = "SELECT name FROM pragma_table_list WHERE type = 'virtual' AND schema = 'main'"
_ACTIONS = """
SELECT f."table", m.name FROM sqlite_master AS m JOIN pragma_foreign_key_list(m.name) AS f
WHERE m.type = 'table' AND NOT (
    f.on_update IN ('NO ACTION', 'RESTRICT') AND f.on_delete IN ('NO ACTION', 'RESTRICT'))
"""
_TRIGGERED = "SELECT tbl_name FROM sqlite_master WHERE type = 'trigger'"


@dataclass(frozen=True)
class Consequences:
    """Which tables change together with others."""

    shadows: frozenset[str]
    """Tables behind search indexes."""
    virtual: frozenset[str]
    """Search indexes and other tables that are implemented by code."""
    children: Mapping[str, frozenset[str]]
    """For each table, those with foreign keys that change with it."""
    triggered: frozenset[str]
    """Tables with triggers, which may change any other table and its children."""

    @cached_property
    def indexes(self) -> frozenset[str]:
        """The virtual tables, in lower case."""
        return frozenset(name.lower() for name in self.virtual)

    def of(self, table: str) -> frozenset[str]:
        """Returns the tables that may change because this one does."""
        affected: set[str] = set()
        pending = [table]
        while pending:
            new = self.children.get(pending.pop(), frozenset()) - affected
            affected |= new
            pending += new
        if self.triggered & {table, *affected}:
            affected.update(*self.children.values())
        return frozenset(affected)


def consequences(db: sqlite3.Connection) -> Consequences:
    """Reads the schema."""
    children: dict[str, frozenset[str]] = {}
    for parent, child in db.execute(_ACTIONS).fetchall():
        known = children.get(parent.lower(), frozenset())
        children[parent.lower()] = known | {child.lower()}
    return Consequences(
        shadows=frozenset(name.lower() for (name,) in db.execute(_SHADOWS).fetchall()),
        virtual=frozenset(name for (name,) in db.execute(_VIRTUAL).fetchall()),
        children=children,
        triggered=frozenset(name.lower() for (name,) in db.execute(_TRIGGERED).fetchall()),
    )


def authorizer(
    allowed: Allowed, *, functions: frozenset[str], consequences: Consequences
) -> Authorizer:
    """Returns the authorizer for an allowed statement."""
    dependent = consequences.of(allowed.table)
    # SQLite changes these when a search index changes, by the statement itself or by a trigger.
    changes_indexes = bool(consequences.indexes & {allowed.table}) or bool(
        consequences.triggered & {allowed.table, *dependent}
    )
    inside_indexes = consequences.shadows if changes_indexes else frozenset[str]()
    may_write = bool(allowed.table) and allowed.table not in consequences.shadows

    def answer(
        action: int,
        name: str | None,
        detail: str | None,
        _database: str | None,
        trigger: str | None,
    ) -> int:
        if action in _READS:
            return sqlite3.SQLITE_OK
        if action == sqlite3.SQLITE_FUNCTION:
            known = (detail or "").lower() in functions
            return sqlite3.SQLITE_OK if known or trigger else sqlite3.SQLITE_DENY
        if action == sqlite3.SQLITE_PRAGMA and (name, detail) == _SEARCH_PRAGMA:
            return sqlite3.SQLITE_OK
        if action in _CHANGES and may_write and may_change((name or "").lower(), action, trigger):
            return sqlite3.SQLITE_OK
        return sqlite3.SQLITE_DENY

    def may_change(table: str, action: int, trigger: str | None) -> bool:
        if table.startswith((OWN_TABLES, "sqlite_")):
            return False
        # Triggers were created by a migration, so its author decided what they do.
        by_trigger = trigger is not None or table in inside_indexes
        by_foreign_key = table in dependent and action in _BY_FOREIGN_KEYS
        by_statement = table == allowed.table and action in _WRITES[allowed.kind]
        return by_trigger or by_foreign_key or by_statement

    return answer


def functions_for(own: frozenset[str]) -> frozenset[str]:
    """Returns the functions that SQLite may call, including those behind operators."""
    return ALLOWED["sqlite"] | own | {"->", "->>"}


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
        self._functions = functions_for(frozenset(name.lower() for name in functions))
        self._statement_seconds = statement_seconds
        self._deadline = 0.0
        self._changes_when_sealed: int | None = None
        """How many changes were counted when the transaction became read-only; None before that."""
        self._schema_version = -1
        self._own_tables: set[str] = set()
        """Those of signoff's own tables that are known to exist in this version of the schema."""
        self._answer: Authorizer = _allow
        """Answers the authorizer's questions about the statement that runs now."""
        self._numbers = count()
        self._authorizers: dict[tuple[StatementKind, str], tuple[str, Authorizer]] = {}
        """For each verdict, the beginning of its statements and what answers for them."""
        self.path = path
        self.label = str(path)
        self._db = _open(path, patience)
        try:
            self._set_up()
        except BaseException:
            self.close()
            raise

    def begin(self, *, write: bool) -> None:
        """Opens a transaction; one that writes locks the database from the start."""
        with translate_errors(self.path):
            self._db.execute("BEGIN IMMEDIATE" if write else "BEGIN")
            self._changes_when_sealed = None if write else self._db.total_changes
            self._update_schema()

    def seal(self) -> None:
        """Makes the rest of a writing transaction read-only."""
        # Counted by SQLite itself, so that a change which every check has missed is still noticed
        # before the commit.
        self._changes_when_sealed = self._db.total_changes

    def commit(self) -> None:
        """Commits the transaction, unless something was changed while it was read-only."""
        if self._changes_when_sealed not in (None, self._db.total_changes):
            self.rollback()
            raise NotAllowed("a statement that may only read has changed something; rolled back")
        with translate_errors(self.path):
            self._db.execute("COMMIT")

    def rollback(self) -> None:
        """Rolls the transaction back, if one is open."""
        if self._db.in_transaction:
            with translate_errors(self.path):
                self._db.execute("ROLLBACK")

    def run(self, sql: str, params: Params, allowed: Allowed) -> StatementResult:
        """Runs a checked statement, and makes sure that it does only what it is allowed to."""
        is_sealed = self._changes_when_sealed is not None
        if is_sealed and allowed.kind is not StatementKind.READ:
            raise NotAllowed(f"{allowed.kind.upper()} is refused here; only reading is allowed")
        self._check_tables(allowed)
        bound = dict(params) if isinstance(params, Mapping) else tuple(params)
        with translate_errors(self.path), self._guarded(allowed) as numbered:
            cursor = self._db.execute(numbered + sql, bound)
            rows = tuple(_rows(cursor))
            if allowed.kind is StatementKind.READ:
                return StatementResult(rows, 0)
        changed = cursor.rowcount
        if changed < 0 or cursor.description is not None:
            # The cursor does not count the rows of WITH ... UPDATE, nor in all versions of Python
            # those that are returned.
            ((changed,),) = self.own("SELECT changes()")
        return StatementResult(rows, int(changed))

    def changes_so_far(self) -> int:
        """Returns how many rows this connection has changed."""
        return self._db.total_changes

    def own(self, sql: str, params: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Runs a statement of signoff's own."""
        with translate_errors(self.path):
            return self._db.execute(sql, tuple(params)).fetchall()

    def can_return(self, table: str) -> bool:
        """Whether a change of this table can return its rows."""
        return table not in self._consequences.indexes

    def has_table(self, name: str) -> bool:
        """Whether a table exists."""
        return bool(self.own(_HAS_TABLE, [name.removeprefix("main.")]))

    def own_table(self, name: str) -> str | None:
        """Returns one of signoff's own tables; None if there is no such table."""
        if name not in self._own_tables and self.has_table(name):
            self._own_tables.add(name)
        return name if name in self._own_tables else None

    def interrupt(self) -> None:
        """Aborts the statement that is running."""
        self._db.interrupt()

    def is_alive(self) -> bool:
        """Whether the connection was not lost; a file's never is."""
        return True

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
        self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_RESULT_BYTES)
        self._db.set_progress_handler(self._is_out_of_time, _STEPS_PER_CLOCK_CHECK)
        self._db.set_authorizer(self._authorize)

    def _authorize(self, *question: Any) -> int:
        return self._answer(*question)

    def _update_schema(self) -> None:
        """Reads the schema if it has changed; other programs may change it at any time."""
        (version,) = self._db.execute("PRAGMA schema_version").fetchone()
        if version == self._schema_version:
            return
        self._consequences = consequences(self._db)
        self._authorizers.clear()
        self._own_tables.clear()
        # SQLite opens a search index, or a function that returns rows, with statements of its
        # own, which the authorizer would refuse. So they are opened here, without it.
        for name in (*self._consequences.virtual, "json_each", "json_tree"):
            quoted = name.replace('"', '""')
            with suppress(sqlite3.OperationalError):
                self._db.execute(f'SELECT 1 FROM "{quoted}" LIMIT 0')  # noqa: S608 - a quoted name
        self._schema_version = version

    def _check_tables(self, allowed: Allowed) -> None:
        hidden = self._consequences.shadows & {allowed.table, *allowed.names.tables}
        if hidden:
            raise NotAllowed(
                f"{min(hidden)} is the inside of a search index and is refused; use the index"
            )

    def _is_out_of_time(self) -> bool:
        return bool(self._deadline) and monotonic() > self._deadline

    @contextmanager
    def _guarded(self, allowed: Allowed) -> Iterator[str]:
        numbered, self._answer = self._authorizer_for(allowed)
        self._deadline = monotonic() + self._statement_seconds
        try:
            yield numbered
        except sqlite3.DatabaseError as error:
            if (translated := self._translate(error)) is None:
                raise
            raise translated from error
        except (sqlite3.Warning, sqlite3.InterfaceError, OverflowError) as error:
            raise StoreError(f"the statement cannot be run: {error}") from error
        finally:
            self._deadline = 0.0
            self._answer = _allow

    def _authorizer_for(self, allowed: Allowed) -> tuple[str, Authorizer]:
        """Returns how the text of a statement begins that SQLite gets, and what answers for it.

        Statements of signoff's own have no such beginning, so that what SQLite has compiled for
        them, without any question, is never run for the same text of a user.
        """
        verdict = (allowed.kind, allowed.table)
        if verdict not in self._authorizers:
            answer = authorizer(allowed, functions=self._functions, consequences=self._consequences)
            self._authorizers[verdict] = f"/*{next(self._numbers)}*/ ", answer
        return self._authorizers[verdict]

    def _translate(self, error: sqlite3.DatabaseError) -> OperatorError | None:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_AUTH or _DENIED.search(str(error)):
            return NotAllowed(f"the database refused the statement: {error}")
        if code == sqlite3.SQLITE_INTERRUPT:
            return StoreError(f"the statement took more than {self._statement_seconds:g} seconds")
        if code == sqlite3.SQLITE_TOOBIG:
            return result_too_large()
        return None


def _allow(*_question: Any) -> int:
    return sqlite3.SQLITE_OK


def _open(path: Path, patience: float) -> sqlite3.Connection:
    if not path.is_file():
        raise UsageError(f"there is no database at {path}; create it, or fix the address")
    with translate_errors(path):
        return sqlite3.connect(
            path,
            isolation_level=None,
            check_same_thread=False,
            timeout=patience,
        )


def _rows(cursor: sqlite3.Cursor) -> Iterator[Row]:
    """Yields the rows of a result; raises `StoreError` when they take too much memory."""
    names = [column[0] for column in cursor.description or ()]
    size = ResultSize()
    for row in cursor:
        size.add(row)
        yield dict(zip(names, row, strict=True))
