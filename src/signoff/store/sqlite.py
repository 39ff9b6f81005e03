"""The embedded store: one SQLite file, no server.

WAL with `synchronous=FULL`: committed data survives a power cut. Every write is one short
`BEGIN IMMEDIATE` transaction. A compare-and-set on the run's row, head and fence together,
in the same transaction as the events, decides who may write to a run's journal: a runner
that has lost its run can add nothing to it.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Sequence
from contextlib import closing
from enum import StrEnum
from functools import cache, partial
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
from signoff.sqlite_errors import translate_errors
from signoff.store import queries as q
from signoff.store.commits import apply, replace_surrogates
from signoff.store.connection import Transaction, connect
from signoff.store.upkeep import back_up, delete_run

E = TypeVar("E", bound=StrEnum)
_Values = tuple[Any, ...]

_INTEGER_LIMIT = 1 << 63
"""SQLite's integers are smaller than this."""

BUSY_TIMEOUT_SECONDS = 60.0
"""How long a write waits for other processes before it gives up."""


class SqliteStore:
    """Keeps runs in one SQLite file."""

    def __init__(self, path: Path | str, *, busy_timeout: float = BUSY_TIMEOUT_SECONDS) -> None:
        """Opens the file, creating or migrating it as needed."""
        self.path = Path(path)
        self._busy_timeout = busy_timeout
        self._waits: bool | None = True
        self._syncs: bool | None = True
        """The connection's current settings; None while they are being changed, which an
        interrupt may leave unfinished."""
        with translate_errors(self.path):
            self._db = connect(self.path, busy_timeout)
        # Reentrant: if Ctrl-C left it locked, its own thread can still lock it again.
        lock = threading.RLock()
        self._read = Transaction(self._db, lock, self.path)
        # Without a transaction, another process could commit between two of our queries, and
        # their results would not belong to the same state.
        begin_snapshot = partial(self._db.execute, "BEGIN")
        self._snapshot = Transaction(self._db, lock, self.path, begin_snapshot)
        self._write = Transaction(self._db, lock, self.path, self._begin)
        no_wait, unsynced = partial(self._begin, wait=False), partial(self._begin, sync=False)
        self._write_no_wait = Transaction(self._db, lock, self.path, no_wait)
        # For leases, which need no sync: other processes see them at once, and a power cut also
        # ends all the owners they are about.
        self._write_unsynced = Transaction(self._db, lock, self.path, unsynced)

    def reopen(self) -> Store:
        """Opens the same file again, for another thread."""
        return SqliteStore(self.path, busy_timeout=self._busy_timeout)

    # Runs

    def load(self, name: str) -> StoredRun:
        """Returns what a runner needs to resume a run; raises `UnknownName`."""
        with self._snapshot as db:
            row = self._row(db, name)
            seq, state = db.execute(q.CHECKPOINT, (row.id,)).fetchone() or (0, None)
            return StoredRun(row, state, seq, self._journal(db, row.id, seq))

    def row(self, name: str) -> RunRow:
        """Returns one run; raises `UnknownName`."""
        with self._read as db:
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
        with self._read as db:
            sql = q.RUNS.format(where=" AND ".join(where))
            return [_run_row(r) for r in db.execute(sql, (*values, limit))]

    def journal(self, run: RunId, after: int = 0) -> list[JournalRow]:
        """Returns a run's commits, oldest first."""
        with self._read as db:
            return self._journal(db, run, after)

    def description(self, run: RunId) -> str:
        """Returns the definition the run was started with, as JSON."""
        with self._read as db:
            return str(self._fetch_one(db, q.DESCRIPTION, (run,))[0])

    def blob(self, digest: str) -> str:
        """Returns a text stored as a blob."""
        with self._read as db:
            return str(self._fetch_one(db, q.BLOB, (bytes.fromhex(digest),))[0])

    def adopt(self, run: RunId, definition: str, description: str) -> None:
        """Replaces a run's frozen definition."""
        key = bytes.fromhex(text_digest(description))
        with self._write as db:
            db.execute(q.PUT_BLOB, (key, description))
            db.execute(q.ADOPT, (definition, key, run))

    # The journal

    def commit(self, commits: Sequence[Commit], *, wait: bool = True) -> list[CommitResult]:
        """Applies the commits of several runs in one transaction, each all or nothing.

        With `wait=False` a locked database raises `StoreBusy` at once.
        """
        with self._write if wait else self._write_no_wait as db:
            return [apply(db, commit) for commit in commits]

    # Leases

    def take(self, run: RunId, owner: Owner, now: float, alive: Alive) -> int:
        """Gives the run to an owner and returns the new fence; raises `RunBusy`."""
        with self._write_unsynced as db:
            row = _run_row(self._fetch_one(db, q.RUN_BY_ID, (run,)))
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
        lease = db.execute(q.OWNER, (row.owner,)).fetchone()
        if lease is None:
            return
        *identity, until = lease
        other = Owner(*identity)
        is_alive = alive(other)
        # Where its process cannot be checked, on another host, the lease's time decides.
        if until > now if is_alive is None else is_alive:
            raise RunBusy(
                f"run {row.name!r} is being driven by process {other.pid} on "
                f"{other.host.split('/')[0]}",
                remedy=CancelRun(row.name),
            )

    def beat(self, owner: Owner, until: float) -> None:
        """Renews all of an owner's leases at once."""
        with self._write_unsynced as db:
            db.execute(q.PUT_OWNER, (owner.id, owner.host, owner.pid, owner.born, until))

    def cancels(self, owner: Owner) -> list[tuple[str, str]]:
        """Returns (run, reason) for each run of an owner that a user asked to cancel."""
        with self._read as db:
            return list(db.execute(q.CANCELS, (owner.id,)))

    def leave(self, owner: Owner) -> None:
        """Releases the runs of an owner that ends, and removes the owner."""
        with self._write_unsynced as db:
            db.execute(q.DROP_LEASES, (owner.id,))
            db.execute(q.DROP_OWNER, (owner.id,))

    def owner(self, identity: str) -> Owner | None:
        """Returns a process that drives runs, or that died without leaving; None if unknown."""
        with self._read as db:
            lease = db.execute(q.OWNER, (identity,)).fetchone()
        return Owner(*lease[:-1]) if lease is not None else None

    def ask_cancel(self, run: RunId, why: str) -> None:
        """Asks the run's owner to cancel it."""
        with self._write as db:
            db.execute(q.ASK_CANCEL, (replace_surrogates(why), run))

    # The inbox

    def items(
        self, run: str | None = None, *, state: Sequence[ItemState] = (ItemState.OPEN,)
    ) -> list[InboxItem]:
        """Returns requests to humans, oldest first."""
        # SQLite uses a partial index only if the query repeats its condition literally.
        where = [f"state IN ({', '.join('?' * len(state))})"]
        if set(state) <= {ItemState.OPEN, ItemState.ANSWERED}:
            where.append("state IN ('open', 'answered')")
        values: list[Any] = list(state)
        if run is not None:
            where.append("run = (SELECT id FROM runs WHERE runs.name = ?)")
            values.append(run)
        with self._read as db:
            sql = q.ITEMS.format(where=" AND ".join(where))
            return list(map(_inbox_item, db.execute(sql, values)))

    def waiting(self) -> list[InboxLine]:
        """Returns what a list shows of every open request, oldest first."""
        with self._read as db:
            return _inbox_lines(db.execute(q.WAITING))

    def item(self, number: int) -> InboxItem:
        """Returns one request; raises `UnknownName`."""
        with self._read as db:
            return self._item(db, number)

    def answer(self, number: int, answer: str, by: str, at: float, digest: str) -> InboxItem:
        """Stores the answer to an open request; raises `InvalidAnswer` or `StaleApproval`."""
        with self._write as db:
            item = self._item(db, number)
            if item.state != ItemState.OPEN:
                raise InvalidAnswer(f"request #{number} is no longer open ({item.state})")
            if item.digest != digest:
                raise StaleApproval(
                    f"request #{number} has changed since it was shown", remedy=ShowInbox(number)
                )
            db.execute(q.ANSWER, (answer, replace_surrogates(by), at, number))
            return self._item(db, number)

    # Spend

    def ledger(self, run: RunId) -> list[LedgerEntry]:
        """Returns what a run's calls cost, by step and agent."""
        with self._read as db:
            return [LedgerEntry(*r) for r in db.execute(q.LEDGER, (run,))]

    def summaries(self, version: int) -> dict[RunId, str]:
        """Returns the summaries of runs that have not changed since."""
        with self._read as db:
            return dict(db.execute(q.SUMMARIES, (version,)))

    def keep_summaries(self, version: int, summaries: Iterable[tuple[RunId, int, str]]) -> None:
        """Stores summaries, each with the commit up to which it was computed."""
        with self._write_no_wait as db:
            rows = ((run, head, version, summary) for run, head, summary in summaries)
            db.executemany(q.PUT_SUMMARY, rows)

    def keep_late(self, run: RunId, effect: str, attempt: int, outcome: str) -> None:
        """Stores a reply that a runner received after it lost its run."""
        with self._write as db:
            db.execute(q.KEEP_LATE, (run, effect, attempt, outcome))

    def late(self, run: RunId) -> dict[tuple[str, int], str]:
        """Returns the late replies of a run, by effect and attempt."""
        with self._read as db:
            return {(effect, n): outcome for effect, n, outcome in db.execute(q.LATE, (run,))}

    # Upkeep

    def delete(self, run: RunId, now: float, alive: Alive) -> None:
        """Deletes a run and what only it used; raises `RunBusy` if a process drives it."""
        with self._write as db:
            row = _run_row(self._fetch_one(db, q.RUN_BY_ID, (run,)))
            if row.owner is not None:
                self._refuse_if_alive(db, row, now, alive)
            delete_run(db, run)

    def backup(self, target: Path) -> int:
        """Copies all runs to a new file while others use them; returns how many there are."""
        with translate_errors(self.path):
            # A connection of its own, so that no call has to wait for the copy.
            return back_up(closing(sqlite3.connect(self.path)), target)

    def close(self) -> None:
        """Closes the connection."""
        with self._read as db:
            db.close()

    # Transactions

    def _begin(self, *, wait: bool = True, sync: bool = True) -> None:
        if wait is not self._waits:
            self._waits = None
            self._db.execute(f"PRAGMA busy_timeout = {int(self._busy_timeout * 1000) * wait}")
            self._waits = wait
        if sync is not self._syncs:
            self._syncs = None
            self._db.execute(f"PRAGMA synchronous = {'FULL' if sync else 'NORMAL'}")
            self._syncs = sync
        self._db.execute("BEGIN IMMEDIATE")

    def _row(self, db: sqlite3.Connection, name: str) -> RunRow:
        values = db.execute(q.RUN_BY_NAME, (name,)).fetchone()
        if values is None:
            raise UnknownName("run", name, [r[0] for r in db.execute(q.RUN_NAMES)])
        return _run_row(values)

    def _journal(self, db: sqlite3.Connection, run: RunId, after: int) -> list[JournalRow]:
        rows = []
        for seq, events, readable in db.execute(q.JOURNAL, (run, after)):
            if not readable:
                raise self._damaged_journal(_run_row(self._fetch_one(db, q.RUN_BY_ID, (run,))), seq)
            rows.append(JournalRow(seq, events))
        return rows

    def _damaged_journal(self, row: RunRow, seq: int) -> StoreDamaged:
        backups = sorted(path.name for path in self.path.parent.glob(f"{self.path.name}.*.backup"))
        hint = f" ({backups[-1]} is next to it)" if backups else ""
        return StoreDamaged(
            f"run {row.name!r} is damaged: commit {seq} of its journal in {self.path} is not "
            f"readable; restore a backup of the file{hint}, or start the run again; "
            "other runs are not affected"
        )

    def _item(self, db: sqlite3.Connection, number: int) -> InboxItem:
        # A number that is too large for SQLite would raise OverflowError; no request has it.
        item_id = number if 0 < number < _INTEGER_LIMIT else 0
        values = db.execute(q.ITEMS.format(where="id = ?"), (item_id,)).fetchone()
        if values is None:
            open_items = db.execute(q.ITEMS.format(where="state = 'open'")).fetchmany(12)
            raise UnknownName("request", f"#{number}", [f"#{r[0]}" for r in open_items])
        return _inbox_item(values)

    def _fetch_one(self, db: sqlite3.Connection, sql: str, values: _Values) -> _Values:
        row: _Values | None = db.execute(sql, values).fetchone()
        if row is None:
            raise StoreDamaged(f"{self.path} lacks data that a run refers to; restore a backup")
        return row


def _inbox_item(values: _Values) -> InboxItem:
    item = InboxItem._make(values)
    return item._replace(
        kind=_parse_enum(RequestKind, item.kind), state=_parse_enum(ItemState, item.state)
    )


def _inbox_lines(rows: Iterable[_Values]) -> list[InboxLine]:
    # Thousands of requests may be open, so this calls as little as possible for each.
    parse = partial(_parse_enum, RequestKind)
    return [
        InboxLine(number, run, step, parse(kind), prompt, opened_at, deadline)
        for number, run, step, kind, prompt, opened_at, deadline in rows
    ]


def _run_row(values: _Values) -> RunRow:
    number, name, workflow, target, definition, status, *others = values
    return RunRow(number, name, workflow, target, definition, _parse_enum(Status, status), *others)


@cache
def _parse_enum(enum: type[E], value: str) -> E:
    try:
        return enum(value)
    except ValueError:
        raise StoreTooNew(
            f"the database contains {value!r}, which this version does not know; upgrade signoff, "
            "or restore a backup"
        ) from None
