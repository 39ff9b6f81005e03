"""A step's statements: collected first, then applied together in one short transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from signoff.errors import NotAllowed, StoreBusy, StoreDamaged, StoreError, WriteFailed
from signoff.guarded_db.guard import excerpt
from signoff.guarded_db.ports import Connection
from signoff.guarded_db.postconditions import Postcondition, failures
from signoff.guarded_db.verdict import Allowed, Dialect, Params
from signoff.guarded_db.view import Reader, ReadOnlyView

_STEPS_TABLE = """
CREATE TABLE IF NOT EXISTS signoff_steps (
    run TEXT NOT NULL, step TEXT NOT NULL, visit INTEGER NOT NULL, item TEXT NOT NULL,
    applied_at TEXT NOT NULL, note TEXT NOT NULL, PRIMARY KEY (run, step, visit, item)
)
"""
_MARK = """
INSERT INTO signoff_steps (run, step, visit, item, applied_at, note) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING RETURNING visit
"""
_NOTED = "SELECT note FROM signoff_steps WHERE run = ? AND step = ? AND visit = ? AND item = ?"
_TABLE_THERE: dict[Dialect, str] = {
    "sqlite": "SELECT 1 FROM sqlite_master WHERE name = 'signoff_steps'",
    "postgres": "SELECT 1 WHERE to_regclass('signoff_steps') IS NOT NULL",
}
_LOCK_NUMBER = 0x5160FF
"""Which lock of the server is ours, while the table of markers is made."""


class Marker(NamedTuple):
    """Which visit of which step of which run; its row says that the step's work was committed."""

    run: str
    step: str
    visit: int
    item: str = ""
    """Which item, where a step fans out."""


@dataclass(frozen=True)
class Statement:
    """A statement that was judged and waits to be applied."""

    sql: str
    params: Params
    allowed: Allowed


@dataclass(frozen=True)
class Committed:
    """Everything was applied, every condition held, and it is on disk."""

    changed: int
    """How many rows were changed; 0 when it was done before."""
    already: bool = False
    """Whether the marker was there: it had been done before, and nothing was done again."""


@dataclass(frozen=True)
class RolledBack:
    """Nothing was changed."""

    reasons: tuple[str, ...]
    """What failed: a statement, or each condition that does not hold."""

    def __str__(self) -> str:
        """Reads as feedback for whoever tries again."""
        return "; ".join(self.reasons)


Applied: TypeAlias = Committed | RolledBack


def apply(
    db: Connection,
    reader: Reader,
    statements: Sequence[Statement],
    postconditions: Sequence[Postcondition],
    marker: Marker,
    *,
    seconds: float,
    note: str = "",
) -> Applied:
    """Applies a step's statements, checks its conditions and marks it done, or undoes it all.

    The note stands in the marker's row, for whoever finds the step done.
    """
    view = ReadOnlyView(reader)
    _make_room(db)
    db.begin(write=True)
    try:
        if not _mark(db, marker, note):
            db.rollback()
            return Committed(0, already=True)
        changed = _run(db, statements)
        if isinstance(changed, RolledBack):
            db.rollback()
            return changed
        db.seal()
        reasons = failures(postconditions, view, seconds=seconds, interrupt=db.interrupt)
        if reasons:
            db.rollback()
            return RolledBack(reasons)
        db.commit()
    except BaseException:
        db.rollback()
        raise
    finally:
        view.close()
    return Committed(changed)


def noted(db: Connection, marker: Marker) -> str | None:
    """Returns the note of a step whose work was committed before; None when it was not."""
    if not db.own(_TABLE_THERE[db.dialect]):
        return None
    rows = db.own(_NOTED, list(marker))
    return str(rows[0][0]) if rows else None


def _make_room(db: Connection) -> None:
    """Makes the table of markers, the first time; in a transaction of its own.

    A change of the schema that is rolled back would make the database read all of it again.
    """
    if db.own(_TABLE_THERE[db.dialect]):
        return
    db.begin(write=True)
    try:
        if db.dialect == "postgres":
            # Two processes may make the table at once, which the server does not expect of them.
            db.own("SELECT pg_advisory_xact_lock(?)", [_LOCK_NUMBER])
        db.own(_STEPS_TABLE)
        db.commit()
    except BaseException:
        db.rollback()
        raise


def _mark(db: Connection, marker: Marker, note: str) -> bool:
    """Inserts the marker; tells whether it was not there yet."""
    return bool(db.own(_MARK, [*marker, datetime.now(UTC).isoformat(timespec="seconds"), note]))


def _run(db: Connection, statements: Sequence[Statement]) -> int | RolledBack:
    changed = 0
    for number, statement in enumerate(statements, start=1):
        try:
            changed += db.run(statement.sql, statement.params, statement.allowed).changed
        except (StoreBusy, StoreDamaged, WriteFailed):
            # Not the statement's fault: whoever runs this has to act, not whoever wrote it.
            raise
        except (StoreError, NotAllowed) as error:
            said = f"statement {number} of {len(statements)} ({excerpt(statement.sql)}): {error}"
            return RolledBack((said,))
    return changed
