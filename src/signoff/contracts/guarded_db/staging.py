"""Applies the statements of a step in one short transaction, if its postconditions hold."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

from signoff.contracts.guarded_db.guard import excerpt
from signoff.contracts.guarded_db.ports import (
    Connection,
    FailedTransactionError,
    Row,
    StatementResult,
    transaction,
)
from signoff.contracts.guarded_db.verdict import Allowed, Params, StatementKind
from signoff.core.errors import (
    AuthorError,
    NotAllowed,
    StoreBusy,
    StoreDamaged,
    StoreError,
    UsageError,
    WriteFailed,
)
from signoff.runtime.error_text import describe_error, lost_work, unmet
from signoff.runtime.handlers import in_idle_thread

# Read access to the database, and the postconditions of a step, which get nothing else.


CONDITION_SECONDS = 10.0
"""Time for all conditions of a step together; the database is locked meanwhile."""

_GRACE_SECONDS = 2.0


Reader: TypeAlias = Callable[[str, Params], tuple[Row, ...]]


class Tables:
    """The database as the conditions of a step and its command see it."""

    def __init__(self, reader: Reader) -> None:
        self._reader: Reader | None = reader

    def query(self, sql: str, params: Params = ()) -> tuple[Row, ...]:
        """Returns the rows of a SELECT, each by column name."""
        if self._reader is None:
            raise UsageError("this view of the database is closed: its transaction has ended")
        return self._reader(sql, params)

    def one(self, sql: str, params: Params = ()) -> Row | None:
        """Returns the first row, or None if there is none."""
        rows = self.query(sql, params)
        return rows[0] if rows else None

    def value(self, sql: str, params: Params = ()) -> Any:
        """Returns the first column of the first row, or None if there is no row."""
        row = self.one(sql, params)
        return next(iter(row.values())) if row else None

    def exists(self, sql: str, params: Params = ()) -> bool:
        """Returns whether there is any row."""
        return self.one(sql, params) is not None

    def stage(self, sql: str, params: Params = ()) -> None:  # noqa: ARG002  # the same call as a step's
        """Refuses: only a step's command stages changes, and its `Tables` takes them."""
        raise NotAllowed("conditions can only read; stage changes in the step's command")

    def close(self) -> None:
        """Ends the view, so that an abandoned condition cannot read later states."""
        self._reader = None


@dataclass(frozen=True)
class Postcondition:
    """A condition that must hold, with a name for messages."""

    name: str
    holds: Callable[[Tables], bool]
    error: str = ""
    """The message if it does not hold; empty for a message with its name."""
    quick: bool = False
    """Whether it takes no noticeable time, cannot hang, and reads nothing from the database."""


def failures(
    conditions: Sequence[Postcondition],
    view: Tables,
    *,
    seconds: float,
    interrupt: Callable[[], None],
) -> tuple[str, ...]:
    """Returns a message for each condition that does not hold; raises an `AuthorError` of one.

    Conditions run in a thread, because a function that hangs can only be abandoned. Those that
    cannot hang do without: handing them over takes longer than they do.
    """
    if all(condition.quick for condition in conditions):
        return tuple(message for each in conditions for message in _messages(each, view))
    messages: list[str] = []
    checked: list[str] = []
    wrong: list[AuthorError] = []
    done = threading.Event()

    def check_all() -> None:
        try:
            for condition in conditions:
                messages.extend(_messages(condition, view))
                checked.append(condition.name)
        except AuthorError as error:
            wrong.append(error)
        except BaseException as error:  # noqa: BLE001 - such as `sys.exit()`: it does not hold
            messages.append(_explained(conditions[len(checked)], f"raised {describe_error(error)}"))
        finally:
            done.set()

    in_idle_thread(check_all)
    if done.wait(seconds):
        if wrong:
            raise wrong[0]
        return tuple(messages)
    view.close()
    stuck = conditions[min(len(checked), len(conditions) - 1)]
    # Copied before the interrupt, which makes the stuck condition fail as well.
    complete = tuple(messages)
    interrupt()
    done.wait(_GRACE_SECONDS)
    return (*complete, _explained(stuck, f"took more than {seconds:g} seconds"))


def _messages(condition: Postcondition, view: Tables) -> tuple[str, ...]:
    """Returns what is wrong about one condition; empty if it holds."""
    try:
        value = condition.holds(view)
    except Exception as error:  # noqa: BLE001  # whatever it raises, it does not hold
        return (unmet(condition.name, condition.error, error),)
    # Not truthiness: a condition that returns a coroutine or a row by mistake would always hold.
    if value is True:
        return ()
    if value is not False:
        what = f"returned {value!r:.80} instead of True or False"
        return (_explained(condition, what),)
    return (condition.error or f"{condition.name}: does not hold",)


def _explained(condition: Postcondition, what: str) -> str:
    """Returns the author's message first, because the worker acts on it, then what happened."""
    if not condition.error:
        return f"{condition.name}: {what}"
    return f"{condition.error} ({condition.name} {what})"


SMALL_TABLE = 10
"""Every row of a smaller table can be changed without a confirmation."""


@dataclass(frozen=True)
class Statement:
    """A statement that was checked and will be applied."""

    sql: str
    params: Params
    allowed: Allowed


@dataclass(frozen=True)
class Impact:
    """The rows that a statement changes."""

    statement: str
    values: str
    """The parameters, as text."""
    table: str
    rows: int
    others: int
    """Rows of other tables that change with them, by foreign keys and triggers."""

    @classmethod
    def of(cls, statement: Statement, rows: int, others: int) -> Impact:
        """Returns the impact of a statement, after its rows were counted."""
        params = statement.params
        values = dict(params) if isinstance(params, Mapping) else list(params)
        shown = repr(values) if values else ""
        return cls(statement.sql, shown, statement.allowed.table, rows, others)

    def is_of(self, statement: Statement) -> bool:
        """Whether this is about a statement, with the same values."""
        return replace(Impact.of(statement, 0, 0), rows=self.rows, others=self.others) == self

    def __str__(self) -> str:
        """Returns the number of rows, for messages."""
        others = f", and {_rows(self.others)} of other tables" if self.others else ""
        return f"{_rows(self.rows)} of {self.table}{others}"

    def to_json(self) -> dict[str, Any]:
        """Returns it as JSON values."""
        return asdict(self)


def must_confirm(allowed: Allowed) -> bool:
    """Whether a statement needs a confirmation, whatever it changes."""
    return allowed.kind is StatementKind.DELETE or allowed.every_row


def run_checked(db: Connection, statement: Statement) -> tuple[StatementResult, bool]:
    """Runs a statement in an open transaction; returns whether it has to be confirmed."""
    allowed = statement.allowed
    # An INSERT ... DO UPDATE of new rows only also touches every row of a table that was empty.
    is_small = allowed.replaces and _count(db, allowed, SMALL_TABLE) < SMALL_TABLE
    result = db.run(statement.sql, statement.params, allowed)
    if must_confirm(allowed):
        return result, True
    may_be_all = allowed.kind is StatementKind.UPDATE or allowed.replaces
    if not may_be_all or is_small or result.changed < SMALL_TABLE:
        return result, False
    # It is enough to count one row more than were changed, however large the table is.
    return result, _count(db, allowed, result.changed + 1) <= result.changed


def run_counted(db: Connection, statement: Statement) -> tuple[StatementResult, Impact, bool]:
    """Does the same, and counts everything that changes."""
    before = db.changes_so_far()
    result, needs_confirmation = run_checked(db, statement)
    others = max(db.changes_so_far() - before - result.changed, 0)
    return result, Impact.of(statement, result.changed, others), needs_confirmation


def rows_digest(result: StatementResult) -> str:
    """Returns a text that identifies the rows that a statement has returned, in any order."""
    rows = sorted(repr(sorted(row.items())) for row in result.rows)
    return hashlib.sha256("\n".join(rows).encode("utf-8", "surrogatepass")).hexdigest()


def _count(db: Connection, allowed: Allowed, limit: int) -> int:
    some = f"SELECT 1 FROM {allowed.target} LIMIT {int(limit)}"  # noqa: S608 - a checked name
    ((number,),) = db.own(f"SELECT count(*) FROM ({some}) AS found")  # noqa: S608 - as above
    return int(number)


def _rows(number: int) -> str:
    return "1 row" if number == 1 else f"{number} rows"


STEPS = "signoff_steps"
STEPS_TABLE = """
CREATE TABLE IF NOT EXISTS {table} (
    run TEXT NOT NULL, step TEXT NOT NULL, visit INTEGER NOT NULL, item TEXT NOT NULL,
    applied_at TEXT NOT NULL, note TEXT NOT NULL, PRIMARY KEY (run, step, visit, item)
)
"""
_MARK = """
INSERT INTO {table} (run, step, visit, item, applied_at, note) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING RETURNING visit
"""
_THIS = "(run = ? AND step = ? AND visit = ? AND item = ?)"
_MARK_AFTER = """
INSERT INTO {table} (run, step, visit, item, applied_at, note) SELECT ?, ?, ?, ?, ?, ?
WHERE EXISTS (SELECT 1 FROM {table} WHERE run = ? AND step = ? AND visit = ? AND item = ?)
ON CONFLICT DO NOTHING RETURNING visit
"""
_READ_NOTES = "SELECT run, step, visit, item, note FROM {table} WHERE {these}"
_LOCK_NUMBER = 0x5160FF
"""The server's lock that is held while the table of markers is created."""


class Marker(NamedTuple):
    """Identifies the work of a step; its row in the database says that the work was committed."""

    run: str
    step: str
    visit: int
    item: str = ""
    """The item, if the step fans out."""


@dataclass(frozen=True)
class Committed:
    """All statements were applied, all conditions held, and the work is committed."""

    changed: int
    """The number of changed rows; 0 if the work was committed before."""
    already: bool = False
    """Whether the work was committed before, so that nothing was done now."""


@dataclass(frozen=True)
class RolledBack:
    """Nothing was changed."""

    reasons: tuple[str, ...]
    """The statement that failed, or each condition that does not hold."""

    def __str__(self) -> str:
        """Returns the reasons as feedback for the next attempt."""
        return "; ".join(self.reasons)


@dataclass(frozen=True)
class Unconfirmed:
    """Nothing was changed, because a statement needs a confirmation."""


Applied: TypeAlias = Committed | RolledBack | Unconfirmed


@dataclass(frozen=True)
class StepWork:
    """What a step wants to change, and what must hold afterwards."""

    statements: Sequence[Statement]
    postconditions: Sequence[Postcondition]
    marker: Marker
    seconds: float = CONDITION_SECONDS
    """The time for all conditions together."""
    note: str = ""
    """Stored with the marker, for a process that finds the step done."""
    confirmed: Sequence[Impact] = ()
    """The changes that may be made although they need a confirmation."""
    after: Marker | None = None
    """Earlier work of the run, which the database must still have."""

    @property
    def is_quick(self) -> bool:
        """Whether no condition can hold up others."""
        return all(each.quick for each in self.postconditions)


def apply(db: Connection, reader: Reader, work: StepWork) -> Applied:
    """Applies a step's statements, checks its conditions and adds its marker, or does nothing."""
    # The marker comes before the statements: of two processes that do the same work at once, the
    # second one waits here, and then finds it done.
    table = _find_or_create_table(db)
    with transaction(db, write=True):
        applied = _apply_in(db, reader, table, work, seal=True)
        if isinstance(applied, Committed):
            try:
                db.commit()
            except FailedTransactionError as error:
                return RolledBack((str(error),))
    return applied


def apply_together(db: Connection, reader: Reader, works: Sequence[StepWork]) -> list[Applied]:
    """Does the same for several steps with one commit; raises if that is not possible.

    Each is a part of the transaction that is undone alone. All their conditions are quick ones.
    """
    table = _find_or_create_table(db)
    ends: list[Applied] = []
    with transaction(db, write=True):
        for work in works:
            db.own("SAVEPOINT signoff_step")
            applied = _apply_in(db, reader, table, work, seal=False)
            if not isinstance(applied, Committed):
                db.own("ROLLBACK TO signoff_step")
            db.own("RELEASE signoff_step")
            ends.append(applied)
        db.commit()
    return ends


def _apply_in(db: Connection, reader: Reader, table: str, work: StepWork, *, seal: bool) -> Applied:
    """Does a step's work in an open transaction; it counts if the caller commits."""
    if not _mark(db, table, work):
        return Committed(0, already=True)
    changed = _run(db, work.statements, list(work.confirmed))
    if not isinstance(changed, int):
        return changed
    if seal:
        # The conditions run the author's code, which must not change anything any more. Quick ones
        # cannot, and a transaction of several steps goes on with the next one's statements.
        db.seal()
    with closing(Tables(reader)) as view:
        reasons = failures(work.postconditions, view, seconds=work.seconds, interrupt=db.interrupt)
    return RolledBack(reasons) if reasons else Committed(changed)


def measure(db: Connection, statements: Sequence[Statement]) -> tuple[Impact, ...] | RolledBack:
    """Returns what the statements that need a confirmation would change; nothing is changed.

    The statements are run and rolled back: no other way of counting agrees with what foreign keys
    and triggers do.
    """
    impacts = []
    with transaction(db, write=True):
        for number, statement in enumerate(statements, start=1):
            try:
                _result, impact, needs_confirmation = run_counted(db, statement)
            except (StoreError, NotAllowed) as error:
                return _failure(number, statements, error)
            if needs_confirmation:
                impacts.append(impact)
    return tuple(impacts)


def read_notes(db: Connection, markers: Sequence[Marker]) -> list[str | None]:
    """Returns the note of each step whose work was committed before; None if it was not."""
    table = db.own_table(STEPS)
    if table is None:
        return [None] * len(markers)
    these = " OR ".join([_THIS] * len(markers))
    values = [value for marker in markers for value in marker]
    rows = db.own(_READ_NOTES.format(table=table, these=these), values)
    notes = {Marker(*row[:4]): str(row[4]) for row in rows}
    return [notes.get(marker) for marker in markers]


def runs_since(db: Connection, moment: str) -> tuple[str, ...]:
    """Returns the runs with work that was committed since a time, in ISO 8601."""
    table = db.own_table(STEPS)
    if table is None:
        return ()
    # Markers have no fractions of a second. A run that is named for nothing does no harm.
    rows = db.own(
        f"SELECT DISTINCT run FROM {table} WHERE substr(applied_at, 1, 19) >= ?",  # noqa: S608
        [moment[:19]],
    )
    # The name of a run is followed by its unique key.
    return tuple(sorted({str(run).rpartition("/")[0] or str(run) for (run,) in rows}))


def _find_or_create_table(db: Connection) -> str:
    """Returns the table of markers; creates it if it is missing, in a transaction of its own.

    As part of a step that is rolled back, it would make SQLite read the whole schema again.
    """
    existing = db.own_table(STEPS)
    if existing is not None:
        return existing
    with transaction(db, write=True):
        if db.dialect == "postgres":
            # IF NOT EXISTS still fails if two sessions create the table at the same time.
            db.own("SELECT pg_advisory_xact_lock(?)", [_LOCK_NUMBER])
        db.own(STEPS_TABLE.format(table=STEPS))
        db.commit()
    return STEPS


def _mark(db: Connection, table: str, work: StepWork) -> bool:
    """Inserts the marker; returns whether it was missing before."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    row = [*work.marker, now, work.note]
    after = work.after
    if after is None:
        return bool(db.own(_MARK.format(table=table), row))
    if db.own(_MARK_AFTER.format(table=table), [*row, *after]):
        return True
    if read_notes(db, [work.marker]) == [None]:
        raise lost_work(after.step)
    return False


def _run(
    db: Connection, statements: Sequence[Statement], confirmed: list[Impact]
) -> int | RolledBack | Unconfirmed:
    changed = 0
    for number, statement in enumerate(statements, start=1):
        try:
            outcome = _run_one(db, statement, confirmed)
        except (StoreError, NotAllowed) as error:
            return _failure(number, statements, error)
        if isinstance(outcome, Unconfirmed):
            return outcome
        changed += outcome
    return changed


def _run_one(db: Connection, statement: Statement, confirmed: list[Impact]) -> int | Unconfirmed:
    expected = next((each for each in confirmed if each.is_of(statement)), None)
    if expected is None:
        if must_confirm(statement.allowed):
            return Unconfirmed()
        result, needs_confirmation = run_checked(db, statement)
        return Unconfirmed() if needs_confirmation else result.changed
    # Each confirmation counts once.
    confirmed.remove(expected)
    result, impact, _needed = run_counted(db, statement)
    if impact != expected:
        raise NotAllowed(
            f"it would change {impact} now, but {expected} were confirmed; it has to be "
            "confirmed again"
        )
    return result.changed


def _failure(number: int, statements: Sequence[Statement], error: Exception) -> RolledBack:
    if isinstance(error, StoreBusy | StoreDamaged | WriteFailed):
        # The operator has to act here; the author of the statement cannot fix it.
        raise error
    sql = statements[number - 1].sql
    return RolledBack((f"statement {number} of {len(statements)} ({excerpt(sql)}): {error}",))
