"""Applies the statements of a step together in one short transaction."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple, TypeAlias

from signoff.errors import NotAllowed, StoreBusy, StoreDamaged, StoreError, WriteFailed
from signoff.guarded_db.guard import excerpt
from signoff.guarded_db.ports import Connection, transaction
from signoff.guarded_db.postconditions import Postcondition, failures
from signoff.guarded_db.verdict import Allowed, Params
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
_READ_NOTE = "SELECT note FROM signoff_steps WHERE run = ? AND step = ? AND visit = ? AND item = ?"
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
class Statement:
    """A statement that was checked and will be applied."""

    sql: str
    params: Params
    allowed: Allowed


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
    """Applies a step's statements, checks its conditions and inserts its marker, or does nothing.

    The note is stored with the marker, for a process that finds the step done.
    """
    _create_table(db)
    with closing(ReadOnlyView(reader)) as view, transaction(db, write=True):
        if not _mark(db, marker, note):
            return Committed(0, already=True)
        changed = _run(db, statements)
        if isinstance(changed, RolledBack):
            return changed
        # The conditions run the author's code, which must not change anything any more.
        db.seal()
        reasons = failures(postconditions, view, seconds=seconds, interrupt=db.interrupt)
        if reasons:
            return RolledBack(reasons)
        db.commit()
    return Committed(changed)


def read_note(db: Connection, marker: Marker) -> str | None:
    """Returns the note of a step whose work was committed before; None if it was not."""
    rows = db.own(_READ_NOTE, list(marker)) if db.has_table("signoff_steps") else []
    return str(rows[0][0]) if rows else None


def _create_table(db: Connection) -> None:
    """Creates the table of markers if it is missing, in a transaction of its own.

    As part of a step that is rolled back, it would make SQLite read the whole schema again.
    """
    if db.has_table("signoff_steps"):
        return
    with transaction(db, write=True):
        if db.dialect == "postgres":
            # IF NOT EXISTS still fails if two sessions create the table at the same time.
            db.own("SELECT pg_advisory_xact_lock(?)", [_LOCK_NUMBER])
        db.own(_STEPS_TABLE)
        db.commit()


def _mark(db: Connection, marker: Marker, note: str) -> bool:
    """Inserts the marker; returns whether it was missing before."""
    return bool(db.own(_MARK, [*marker, datetime.now(UTC).isoformat(timespec="seconds"), note]))


def _run(db: Connection, statements: Sequence[Statement]) -> int | RolledBack:
    changed = 0
    for number, statement in enumerate(statements, start=1):
        try:
            changed += db.run(statement.sql, statement.params, statement.allowed).changed
        except (StoreBusy, StoreDamaged, WriteFailed):
            # The operator has to act here; the author of the statement cannot fix it.
            raise
        except (StoreError, NotAllowed) as error:
            name = f"statement {number} of {len(statements)} ({excerpt(statement.sql)})"
            return RolledBack((f"{name}: {error}",))
    return changed
