"""The embedded store: one SQLite file, no server.

WAL with `synchronous=FULL`: committed data survives a power cut. Every write is one short
`BEGIN IMMEDIATE` transaction. A compare-and-set on the run's row, head and fence together,
in the same transaction as the events, decides who may write to a run's journal: a runner
that has lost its run can add nothing to it.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from signoff.core.digest import text_digest
from signoff.core.outcome import FINAL, Status
from signoff.core.requests import ItemState
from signoff.core.spend import LedgerEntry
from signoff.databases import translate_errors
from signoff.errors import StoreDamaged, UnknownName
from signoff.runtime.store_port import (
    FORGOTTEN_SECONDS,
    LEASE_SECONDS,
    Alive,
    Commit,
    CommitResult,
    DispatchToken,
    InboxItem,
    InboxLine,
    JournalRow,
    LedgerTotal,
    News,
    Owner,
    Position,
    RunId,
    RunRow,
    RunTransfer,
    Store,
    StoredRun,
    StoreHealth,
    WorkerRow,
)
from signoff.store import queries as q
from signoff.store.connection import (
    IN_MEMORY,
    OpenFile,
    SqliteTransfer,
    Transaction,
    back_up,
    check,
    connect,
    damaged_journal,
    delete_run,
)
from signoff.store.queries import apply, replace_surrogates
from signoff.store.rows import (
    RENEWED_SECONDS,
    busy,
    inbox_item,
    inbox_lines,
    is_held,
    is_later_attempt,
    refuse_answer,
    request_id,
    run_row,
    unknown_run,
    worker_rows,
)

_Values = tuple[Any, ...]

BUSY_TIMEOUT_SECONDS = 60.0
"""How long a write waits for other processes before it gives up."""


class SqliteStore:
    """Keeps runs in one SQLite file."""

    def __init__(self, path: Path | str, *, busy_timeout: float = BUSY_TIMEOUT_SECONDS) -> None:
        """Opens the file, creating or migrating it as needed."""
        self.path = Path(path)
        self.wall_time = time.time
        """Judges leases and due times; one machine has one, so it is that of every process."""
        self._busy_timeout = busy_timeout
        self._waits: bool | None = True
        self._syncs: bool | None = True
        """The connection's current settings; None while they are being changed, which an
        interrupt may leave unfinished."""
        with translate_errors(self.path):
            self._db = connect(self.path, busy_timeout)
        self._file = OpenFile(self.path)
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

    def local_file(self) -> Path | None:
        """Returns the database file."""
        return self.path

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
        self,
        *,
        status: Sequence[Status] = (),
        due_before: float | None = None,
        workflow: str = "",
        text: str = "",
        before: RunId | None = None,
        limit: int = -1,
    ) -> list[RunRow]:
        """Returns runs, newest first."""
        where, values = q.run_conditions(status, due_before, workflow, text, before)
        with self._read as db:
            sql = q.RUNS.format(where=where)
            return [run_row(r) for r in db.execute(sql, (*values, limit))]

    def journal(self, run: RunId, after: int = 0) -> list[JournalRow]:
        """Returns a run's commits, oldest first."""
        with self._read as db:
            return self._journal(db, run, after)

    def changes(self) -> int:
        """Returns a number that differs once this or another connection has written."""
        with self._read as db:
            return self._file.changes(db) + db.total_changes

    def listener(self) -> None:
        """Returns None: SQLite sends no notifications."""

    def news(self, after: Position | None) -> News:
        """Returns what was committed after a position."""
        with self._snapshot as db:
            return read_news(db, after)

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

    def take(
        self,
        run: RunId,
        owner: Owner,
        alive: Alive,
        *,
        lease_seconds: float = LEASE_SECONDS,
        token: DispatchToken | None = None,
    ) -> int:
        """Gives the run to an owner and returns the new fence; raises `RunBusy`."""
        with self._write_unsynced as db:
            row = run_row(self._fetch_one(db, q.RUN_BY_ID, (run,)))
            last = DispatchToken(*self._fetch_one(db, q.LAST_ATTEMPT, (run,)))
            if row.owner != owner.id:
                self._refuse_if_alive(db, row, alive, is_later_attempt(row, token, last))
            self._put_owner(db, owner, lease_seconds)
            db.execute(q.TAKE, (owner.id, *(token or (None, None)), run))
            return row.fence + 1

    def _refuse_if_alive(
        self, db: sqlite3.Connection, row: RunRow, alive: Alive, is_later: bool = False
    ) -> None:
        other = self._living_owner(db, row.owner, alive, is_later)
        if other is not None:
            raise busy(row, other)

    def enqueue(self, run: RunId, needs: Sequence[str], alive: Alive) -> bool:
        """Hands a run to workers; False if it has ended or a process drives it."""
        with self._write as db:
            row = run_row(db.execute(q.RUN_BY_ID, (run,)).fetchone())
            if row.status in FINAL or self._living_owner(db, row.owner, alive):
                return False
            db.execute(q.ENQUEUE, (json.dumps(needs), self.wall_time(), run))
            db.execute(q.RELEASE, (run,))
            return True

    def claim(
        self, owner: Owner, capabilities: Iterable[str], alive: Alive, limit: int
    ) -> list[RunRow]:
        """Gives runs that were handed over and can continue to a worker, the oldest first."""
        able = sorted(capabilities)
        with self._read as db:
            # Most looks find nothing, and need no lock then.
            if next(self._claimable(db, owner, able, alive), None) is None:
                return []
        with self._write_unsynced as db:
            found = list(islice(self._claimable(db, owner, able, alive), limit))
            # A claim is a lease like any other: this row decides for how long the worker is
            # believed, and the run's fence who may write.
            self._put_owner(db, owner)
            db.executemany(q.CLAIM, [(owner.id, row.id) for row in found])
            return [row._replace(owner=owner.id) for row in found]

    def _claimable(
        self, db: sqlite3.Connection, owner: Owner, able: list[str], alive: Alive
    ) -> Iterator[RunRow]:
        """Yields the runs that this owner could claim now, the longest waiting first."""
        values = {"now": self.wall_time(), "owner": owner.id, "capabilities": json.dumps(able)}
        # Whether a process lives is asked once for each owner, however many runs it has.
        is_busy = cache(lambda other: self._living_owner(db, other, alive) is not None)
        for columns in db.execute(q.CLAIMABLE, values):
            row = run_row(columns)
            if row.owner is None or not is_busy(row.owner):
                yield row

    def register(self, owner: Owner, slots: int, capabilities: Iterable[str]) -> int:
        """Lists an owner as a worker until it leaves; returns its number."""
        with self._write_unsynced as db:
            self._put_owner(db, owner)
            now = self.wall_time()
            db.execute(q.FORGET_OWNERS, (now - FORGOTTEN_SECONDS,))
            db.execute(q.FORGET_WORKERS)
            db.execute(q.REGISTER, (owner.id, slots, json.dumps(sorted(capabilities)), now))
            return int(db.execute(q.WORKER_NUMBER, (owner.id,)).fetchone()[0])

    def workers(self, alive: Alive) -> list[WorkerRow]:
        """Returns the workers that have not left, the oldest first."""
        with self._read as db:
            return worker_rows(db.execute(q.WORKERS, (self.wall_time(),)), alive)

    def beat(self, owner: Owner, lease_seconds: float = LEASE_SECONDS) -> None:
        """Renews all of an owner's leases at once."""
        with self._write_unsynced as db:
            self._put_owner(db, owner, lease_seconds)

    def _put_owner(
        self, db: sqlite3.Connection, owner: Owner, lease_seconds: float = LEASE_SECONDS
    ) -> None:
        """Renews all leases of an owner."""
        until = self.wall_time() + lease_seconds
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
            db.execute(q.DROP_WORKER, (owner.id,))

    def owner(self, identity: str, alive: Alive) -> Owner | None:
        """Returns a process that drives runs; None if it has ended."""
        with self._read as db:
            return self._living_owner(db, identity, alive)

    def _living_owner(
        self, db: sqlite3.Connection, identity: str | None, alive: Alive, is_later: bool = False
    ) -> Owner | None:
        """Returns an owner that has to be believed alive; None if it is dead or unknown.

        `is_later` is whether a later attempt of a dispatcher wants its run.
        """
        lease = None if identity is None else db.execute(q.OWNER, (identity,)).fetchone()
        if lease is None:
            return None
        *fields, until = lease
        owner = Owner(*fields)
        leased = until > self.wall_time() + (RENEWED_SECONDS if is_later else 0.0)
        return owner if is_held(owner, alive, leased=leased) else None

    def ask_cancel(self, run: RunId, why: str) -> None:
        """Asks the run's owner to cancel it."""
        with self._write as db:
            db.execute(q.ASK_CANCEL, (replace_surrogates(why), run))

    # The inbox

    def items(
        self, run: str | None = None, *, state: Sequence[ItemState] = (ItemState.OPEN,)
    ) -> list[InboxItem]:
        """Returns requests to humans, oldest first."""
        where, values = q.item_conditions(run, state)
        with self._read as db:
            return list(map(inbox_item, db.execute(q.ITEMS.format(where=where), values)))

    def waiting(self) -> list[InboxLine]:
        """Returns what a list shows of every open request, oldest first."""
        with self._read as db:
            return inbox_lines(db.execute(q.WAITING).fetchall())

    def item(self, number: int) -> InboxItem:
        """Returns one request; raises `UnknownName`."""
        with self._read as db:
            return self._item(db, number)

    def answer(self, number: int, answer: str, by: str, at: float, digest: str) -> InboxItem:
        """Stores the answer to an open request; raises `InvalidAnswer` or `StaleApproval`."""
        with self._write as db:
            refuse_answer(self._item(db, number), digest)
            db.execute(q.ANSWER, (answer, replace_surrogates(by), at, number))
            return self._item(db, number)

    # Spend

    def ledger(self, run: RunId) -> list[LedgerEntry]:
        """Returns what a run's calls cost, by step and agent."""
        with self._read as db:
            return [LedgerEntry(*r) for r in db.execute(q.LEDGER, (run,))]

    def ledger_totals(self, since: float) -> list[LedgerTotal]:
        """Returns what the runs updated since a time cost, by workflow, agent and model."""
        with self._read as db:
            return [LedgerTotal(*r) for r in db.execute(q.LEDGER_TOTALS, (since,))]

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

    def delete(self, run: RunId, alive: Alive) -> None:
        """Deletes a run and what only it used; raises `RunBusy` if a process drives it."""
        with self._write as db:
            row = run_row(self._fetch_one(db, q.RUN_BY_ID, (run,)))
            self._refuse_if_alive(db, row, alive)
            delete_run(db, run)

    def backup(self, target: Path) -> int:
        """Copies all runs to a new file while others use them; returns how many there are."""
        with translate_errors(self.path):
            # A connection of its own, so that no call has to wait for the copy.
            return back_up(closing(sqlite3.connect(self.path)), target)

    def transfer(self) -> RunTransfer:
        """Returns what moves runs to this store or away from it."""
        return SqliteTransfer(self._read, self._write)

    def health(self) -> StoreHealth:
        """Checks that the file is intact."""
        with self._read as db:
            return check(db, self.path)

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
            moved = self.transfer().moved(name)
            raise unknown_run(name, moved, [r[0] for r in db.execute(q.RUN_NAMES)])
        return run_row(values)

    def _journal(self, db: sqlite3.Connection, run: RunId, after: int) -> list[JournalRow]:
        rows = []
        for seq, events, readable in db.execute(q.JOURNAL, (run, after)):
            if not readable:
                row = run_row(self._fetch_one(db, q.RUN_BY_ID, (run,)))
                raise damaged_journal(self.path, row, seq)
            rows.append(JournalRow(seq, events))
        return rows

    def _item(self, db: sqlite3.Connection, number: int) -> InboxItem:
        values = db.execute(q.ITEMS.format(where="id = ?"), (request_id(number),)).fetchone()
        if values is None:
            open_items = db.execute(q.ITEMS.format(where="state = 'open'")).fetchmany(12)
            raise UnknownName("request", f"#{number}", [f"#{r[0]}" for r in open_items])
        return inbox_item(values)

    def _fetch_one(self, db: sqlite3.Connection, sql: str, values: _Values) -> _Values:
        row: _Values | None = db.execute(sql, values).fetchone()
        if row is None:
            raise StoreDamaged(f"{self.path} lacks data that a run refers to; restore a backup")
        return row


def read_news(db: sqlite3.Connection, after: Position | None) -> News:
    """Returns what was committed after a commit; with None, only how far everything is.

    A journal row gets a number above all others, so whatever has a higher one is newer. That holds
    as long as the row itself exists: once it was deleted, its number may be given out again.
    """
    newest = db.execute(q.NEWEST_COMMIT).fetchone()
    last = (RunId(newest[0]), newest[1]) if newest else None
    others = repr((db.execute(q.RUN_COUNTS).fetchall(), db.execute(q.REQUEST_COUNTS).fetchone()))
    if after is None or after == last:
        return News(last, [], complete=True, others=others)
    place = db.execute(q.COMMIT_PLACE, after).fetchone()
    if place is None:
        return News(last, [], complete=False, others=others)
    rows = [run_row(each) for each in db.execute(q.RUNS_COMMITTED_AFTER, place)]
    return News(last, rows, complete=True, others=others)


# A store that lasts as long as its process, for tests and throwaway runs.
#
# It is the SQLite store without a file, so it behaves like the durable store in every way
# except durability.


class MemoryStore(SqliteStore):
    """Keeps runs in an in-memory database."""

    def __init__(self) -> None:
        super().__init__(IN_MEMORY)
        weakref.finalize(self, _close, self._read)

    def reopen(self) -> Store:
        """Returns itself: another connection would see a database of its own."""
        return self

    def local_file(self) -> Path | None:
        """Returns None: no other process sees this store."""
        return None

    def backup(self, target: Path) -> int:
        """Copies all runs to a new file; returns how many there are."""
        return back_up(self._read, target)

    def close(self) -> None:
        """Does nothing: the runs remain for as long as the store object exists."""


def _close(connection: Transaction) -> None:
    """Closes a connection that no thread uses at the moment.

    At the end of the program the heartbeat may still read, and a connection that is closed under
    a running query crashes the interpreter.
    """
    with connection as db:
        db.close()
