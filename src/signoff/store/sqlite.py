"""The embedded store: one SQLite file, no server.

WAL with `synchronous=FULL`: what was committed survives a power cut. Every write is one
short `BEGIN IMMEDIATE` transaction. Who may write a run's journal is decided by a
compare-and-set on the run's row, head and fence together, in the same transaction as
the events: a runner that lost its run can add nothing to it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from signoff.core.digest import text_digest
from signoff.core.outcome import Status
from signoff.core.requests import ItemState, RequestKind
from signoff.core.spend import LedgerEntry
from signoff.errors import (
    InvalidAnswer,
    RunBusy,
    StaleApproval,
    StoreDamaged,
    StoreTooNew,
    UnknownName,
)
from signoff.remedies import CancelRun, ShowInbox
from signoff.runtime.store_port import (
    LEASE_SECONDS,
    Alive,
    Commit,
    CommitResult,
    InboxItem,
    InboxLine,
    JournalRow,
    Owner,
    RunId,
    RunRow,
    Store,
    StoredRun,
)
from signoff.sqlite_errors import translated
from signoff.store import queries as q
from signoff.store.commits import apply, whole
from signoff.store.connection import Transaction, connect

_NUMBERS = 1 << 63

PATIENCE_SECONDS = 60.0
"""How long a write waits for other processes before it gives up."""


E = TypeVar("E", bound=StrEnum)


class SqliteStore:
    """Runs in one SQLite file."""

    def __init__(self, path: Path | str, *, patience: float = PATIENCE_SECONDS) -> None:
        """Opens the file, creating or migrating it as needed."""
        self.path = Path(path)
        self._patience = patience
        self._waits: bool | None = True
        self._syncs: bool | None = True
        """What the connection was told last; None while it is being told something else."""
        with translated(self.path):
            self._db = connect(self.path, patience)
        # One that its own thread can take again, should a Ctrl-C have left it taken.
        lock = threading.RLock()
        self._reading = Transaction(self._db, lock, self.path)
        self._reading_as_one = Transaction(self._db, lock, self.path, self._begin_reading)
        self._writing = Transaction(self._db, lock, self.path, self._begin)
        self._writing_at_once = Transaction(self._db, lock, self.path, self._begin_at_once)
        self._passing = Transaction(self._db, lock, self.path, self._begin_passing)

    def reopen(self) -> Store:
        """Opens the same file once more, for another thread."""
        return SqliteStore(self.path, patience=self._patience)

    # Runs

    def load(self, name: str) -> StoredRun:
        """Returns what a runner needs; raises `UnknownName`."""
        with self._reading_as_one as db:
            row = self._row(db, name)
            seq, state = db.execute(q.CHECKPOINT, (row.id,)).fetchone() or (0, None)
            return StoredRun(row, state, seq, self._journal(db, row.id, seq))

    def row(self, name: str) -> RunRow:
        """Returns one run; raises `UnknownName`."""
        with self._reading as db:
            return self._row(db, name)

    def rows(
        self, *, status: Sequence[Status] = (), due_before: float | None = None, limit: int = -1
    ) -> list[RunRow]:
        """Returns runs, newest first."""
        where, values = ["1"], list[Any]()
        if status:
            where.append(f"status IN ({', '.join('?' * len(status))})")
            values.extend(s.value for s in status)
        if due_before is not None:
            where.append("due_at <= ?")
            values.append(due_before)
        with self._reading as db:
            sql = q.RUNS.format(where=" AND ".join(where))
            return [_run_row(r) for r in db.execute(sql, (*values, limit))]

    def journal(self, run: RunId, after: int = 0) -> list[JournalRow]:
        """Returns a run's commits, oldest first."""
        with self._reading as db:
            return self._journal(db, run, after)

    def description(self, run: RunId) -> str:
        """Returns the definition the run was started with, as JSON."""
        with self._reading as db:
            return str(self._one(db, q.DESCRIPTION, (run,))[0])

    def blob(self, digest: str) -> str:
        """Returns a text kept apart."""
        with self._reading as db:
            return str(self._one(db, q.BLOB, (bytes.fromhex(digest),))[0])

    def adopt(self, run: RunId, definition: str, description: str) -> None:
        """Replaces a run's frozen definition."""
        key = bytes.fromhex(text_digest(description))
        with self._writing as db:
            db.execute(q.PUT_BLOB, (key, description))
            db.execute(q.ADOPT, (definition, key, run))

    # The journal

    def commit(self, commits: Sequence[Commit], *, wait: bool = True) -> list[CommitResult]:
        """Applies the commits of several runs in one transaction, each all or nothing.

        With `wait=False` a locked database raises `StoreBusy` at once.
        """
        with self._writing if wait else self._writing_at_once as db:
            return [apply(db, commit) for commit in commits]

    # Leases

    def take(self, run: RunId, owner: Owner, now: float, alive: Alive) -> int:
        """Gives the run to an owner and returns the new fence."""
        with self._passing as db:
            row = _run_row(self._one(db, q.RUN_BY_ID, (run,)))
            if row.owner is not None and row.owner != owner.id:
                self._refuse_if_alive(db, row, now, alive)
            db.execute(
                q.PUT_OWNER, (owner.id, owner.host, owner.pid, owner.born, now + LEASE_SECONDS)
            )
            db.execute(q.TAKE, (owner.id, run))
            return row.fence + 1

    def _refuse_if_alive(
        self, db: sqlite3.Connection, row: RunRow, now: float, alive: Alive
    ) -> None:
        found = db.execute(q.OWNER, (row.owner,)).fetchone()
        if found is None:
            return
        *identity, until = found
        other = Owner(*identity)
        lives = alive(other)
        if until > now if lives is None else lives:
            raise RunBusy(
                f"run {row.name!r} is being driven by process {other.pid} on "
                f"{other.host.split('/')[0]}",
                remedy=CancelRun(row.name),
            )

    def beat(self, owner: Owner, until: float) -> None:
        """Renews all of an owner's leases at once."""
        with self._passing as db:
            db.execute(q.PUT_OWNER, (owner.id, owner.host, owner.pid, owner.born, until))

    def cancels(self, owner: Owner) -> list[tuple[str, str]]:
        """Returns (run, why) for each run of an owner that somebody asked to cancel."""
        with self._reading as db:
            return list(db.execute(q.CANCELS, (owner.id,)))

    def leave(self, owner: Owner) -> None:
        """Forgets an owner that ends."""
        with self._passing as db:
            db.execute(q.DROP_LEASES, (owner.id,))
            db.execute(q.DROP_OWNER, (owner.id,))

    def owner(self, identity: str) -> Owner | None:
        """Returns a process that drives runs, or did and could not say that it ended."""
        with self._reading as db:
            found = db.execute(q.OWNER, (identity,)).fetchone()
        return Owner(*found[:-1]) if found is not None else None

    def ask_cancel(self, run: RunId, why: str) -> None:
        """Asks whoever drives the run to cancel it."""
        with self._writing as db:
            db.execute(q.ASK_CANCEL, (whole(why), run))

    # The inbox

    def items(
        self, run: str | None = None, *, state: Sequence[ItemState] = (ItemState.OPEN,)
    ) -> list[InboxItem]:
        """Returns requests to people, oldest first."""
        # Written out, so that the partial index on live requests can serve it.
        where = [f"state IN ({', '.join('?' * len(state))})"]
        if set(state) <= {ItemState.OPEN, ItemState.ANSWERED}:
            where.append("state IN ('open', 'answered')")
        values: list[Any] = list(state)
        if run is not None:
            where.append("run = (SELECT id FROM runs WHERE runs.name = ?)")
            values.append(run)
        with self._reading as db:
            sql = q.ITEMS.format(where=" AND ".join(where))
            return list(map(_inbox_item, db.execute(sql, values)))

    def waiting(self) -> list[InboxLine]:
        """Returns every open request as a list shows it, oldest first."""
        with self._reading as db:
            return list(map(_inbox_line, db.execute(q.WAITING)))

    def item(self, number: int) -> InboxItem:
        """Returns one request; raises `UnknownName`."""
        with self._reading as db:
            return self._item(db, number)

    def answer(self, number: int, answer: str, by: str, at: float, digest: str) -> InboxItem:
        """Stores an answer, once."""
        with self._writing as db:
            item = self._item(db, number)
            if item.state != ItemState.OPEN:
                raise InvalidAnswer(f"request #{number} is no longer open ({item.state})")
            if item.digest != digest:
                raise StaleApproval(
                    f"request #{number} shows something else by now", remedy=ShowInbox(number)
                )
            db.execute(q.ANSWER, (answer, whole(by), at, number))
            return self._item(db, number)

    # Spend

    def ledger(self, run: RunId) -> list[LedgerEntry]:
        """Returns what a run's calls cost, by step and agent."""
        with self._reading as db:
            return [LedgerEntry(*r) for r in db.execute(q.LEDGER, (run,))]

    def keep_late(self, run: RunId, effect: str, attempt: int, outcome: str) -> None:
        """Keeps a reply that a fenced runner could no longer record."""
        with self._writing as db:
            db.execute(q.KEEP_LATE, (run, effect, attempt, outcome))

    def late(self, run: RunId) -> dict[tuple[str, int], str]:
        """Returns such replies, by effect and attempt."""
        with self._reading as db:
            return {(effect, n): outcome for effect, n, outcome in db.execute(q.LATE, (run,))}

    def close(self) -> None:
        """Lets go of the file."""
        with self._reading as db:
            db.close()

    # Transactions

    def _begin(self, *, wait: bool = True, sync: bool = True) -> None:
        if wait is not self._waits:
            self._waits = None
            self._db.execute(f"PRAGMA busy_timeout = {int(self._patience * 1000) * wait}")
            self._waits = wait
        if sync is not self._syncs:
            self._syncs = None
            self._db.execute(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
            self._syncs = sync
        self._db.execute("BEGIN IMMEDIATE")

    def _begin_reading(self) -> None:
        # What another process commits between two of our queries would not fit together.
        self._db.execute("BEGIN")

    def _begin_at_once(self) -> None:
        self._begin(wait=False)

    def _begin_passing(self) -> None:
        # Other processes see it at once, and a power cut ends everybody it is about.
        self._begin(sync=False)

    def _row(self, db: sqlite3.Connection, name: str) -> RunRow:
        found = db.execute(q.RUN_BY_NAME, (name,)).fetchone()
        if found is None:
            raise UnknownName("run", name, [r[0] for r in db.execute(q.RUN_NAMES)])
        return _run_row(found)

    def _journal(self, db: sqlite3.Connection, run: RunId, after: int) -> list[JournalRow]:
        found = []
        for seq, events, readable in db.execute(q.JOURNAL, (run, after)):
            if not readable:
                raise self._unreadable(_run_row(self._one(db, q.RUN_BY_ID, (run,))), seq)
            found.append(JournalRow(seq, events))
        return found

    def _unreadable(self, row: RunRow, seq: int) -> StoreDamaged:
        beside = sorted(each.name for each in self.path.parent.glob(f"{self.path.name}.*.backup"))
        which = f" ({beside[-1]} is beside it)" if beside else ""
        return StoreDamaged(
            f"run {row.name!r} is damaged: commit {seq} of its journal in {self.path} is not "
            f"readable; restore a backup of the file{which}, or start the run anew; "
            "other runs are not affected"
        )

    def _item(self, db: sqlite3.Connection, number: int) -> InboxItem:
        # No request has a number beyond what SQLite can count; it would not even look for one.
        asked = number if 0 < number < _NUMBERS else 0
        found = db.execute(q.ITEMS.format(where="id = ?"), (asked,)).fetchone()
        if found is None:
            live = db.execute(q.ITEMS.format(where="state = 'open'")).fetchmany(12)
            raise UnknownName("request", f"#{number}", [f"#{r[0]}" for r in live])
        return _inbox_item(found)

    def _one(self, db: sqlite3.Connection, sql: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
        found: tuple[Any, ...] | None = db.execute(sql, values).fetchone()
        if found is None:
            raise StoreDamaged(f"{self.path} lacks something a run refers to; restore a backup")
        return found


def _inbox_item(values: tuple[Any, ...]) -> InboxItem:
    item = InboxItem._make(values)
    return item._replace(kind=_known(RequestKind, item.kind), state=_known(ItemState, item.state))


def _inbox_line(values: tuple[Any, ...]) -> InboxLine:
    line = InboxLine._make(values)
    return line._replace(kind=_known(RequestKind, line.kind))


def _known(enum: type[E], word: str) -> E:
    try:
        return enum(word)
    except ValueError:
        raise StoreTooNew(
            f"the inbox holds {word!r}, which this signoff does not know; upgrade signoff"
        ) from None


_STATUS = {status.value: status for status in Status}
_AT_STATUS = RunRow._fields.index("status")


def _run_row(values: tuple[Any, ...]) -> RunRow:
    try:
        status = _STATUS[values[_AT_STATUS]]
    except KeyError:
        raise StoreDamaged(
            f"a run has the status {values[_AT_STATUS]!r}, which this signoff does not know; "
            "restore a backup, or upgrade signoff"
        ) from None
    return RunRow._make((*values[:_AT_STATUS], status, *values[_AT_STATUS + 1 :]))
