"""The embedded store: one SQLite file, no server.

WAL with `synchronous=FULL`: committed data survives a power cut. Every write is one short
`BEGIN IMMEDIATE` transaction. A compare-and-set on the run's row, head and fence together,
in the same transaction as the events, decides who may write to a run's journal: a runner
that has lost its run can add nothing to it.
"""

from __future__ import annotations

import json
import re
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import cache, partial
from itertools import islice
from pathlib import Path
from typing import Any

from signoff.runtime import store_port as port
from signoff.runtime.run_transfer import references
from signoff.store import base, connection
from signoff.store.commits import Row, RunText, StoreSession, apply
from signoff.store.databases import translate_errors

_NAME = "SELECT name FROM runs WHERE id = ?"
_JOURNAL = """
SELECT seq, events, json_valid(events) FROM journal WHERE run = ? AND seq > ? ORDER BY seq
"""

_NEWEST_COMMIT = "SELECT run, seq FROM journal ORDER BY rowid DESC LIMIT 1"
_COMMIT_PLACE = "SELECT rowid FROM journal WHERE run = ? AND seq = ?"
_RUNS_COMMITTED_AFTER = f"""
SELECT {base.RUN} FROM runs WHERE id IN (SELECT run FROM journal WHERE rowid > ?) ORDER BY id
"""
# Both are answered by an index alone.
_RUN_COUNTS = "SELECT status, count(*) FROM runs GROUP BY status"
_REQUEST_COUNTS = (
    "SELECT count(*), max(id), sum(id) FROM inbox INDEXED BY inbox_open WHERE state = 'open'"
)

_PUT_BLOB = "INSERT OR IGNORE INTO blobs (digest, text) VALUES (?, ?)"

# An unreadable checkpoint is ignored: the journal contains everything that is in it.
_CHECKPOINT = "SELECT seq, state FROM checkpoints WHERE run = ? AND json_valid(state)"


# Each part uses an index, so that runs that have ended or wait for long cost nothing. Whether an
# owner is alive cannot be asked in SQL.
_CLAIMABLE = f"""
SELECT {base.RUN} FROM runs
WHERE id IN (
    SELECT id FROM runs WHERE status IN ('queued', 'running')
    UNION SELECT id FROM runs WHERE due_at <= :now AND status IN ('parked', 'waiting')
    UNION SELECT run FROM inbox WHERE state = 'answered'
          AND (SELECT status FROM runs WHERE id = run) = 'waiting'
) AND needs IS NOT NULL AND owner IS NOT :owner
  AND NOT EXISTS (SELECT 1 FROM json_each(needs) WHERE value NOT IN
                  (SELECT value FROM json_each(:capabilities)))
ORDER BY updated_at, id
"""
_CLAIM = "UPDATE runs SET owner = ? WHERE id = ?"

_DELETE_BLOB = "DELETE FROM blobs WHERE digest = ?"
_DESCRIPTIONS = "SELECT lower(hex(description)) FROM runs"

_WITH_REFERENCES = (
    "SELECT events FROM journal",
    "SELECT state FROM checkpoints",
    "SELECT form FROM inbox",
    "SELECT answer FROM inbox",
    "SELECT outcome FROM late",
)
"""Every column whose JSON may refer to texts that are stored separately."""

BUSY_TIMEOUT_SECONDS = 60.0
"""How long a write waits for other processes before it gives up."""

_NOTATION = {"{s}.": "", "{position}": "instr", "$": "?"}
"""How SQLite writes what `store.base` leaves open. A transaction locks the whole file, and no one
is told anything."""
_SUM = re.compile(r"\{sum (\w+)\}")
_NOT_NEEDED = re.compile(r"\{lock\}|\{tell \w+\}")


@cache
def local_sql(sql: str) -> str:
    """Returns a statement of `store.base` as SQLite takes it."""
    for mark, text in _NOTATION.items():
        sql = sql.replace(mark, text)
    return _NOT_NEEDED.sub("", _SUM.sub(r"sum(\1)", sql))


class _SqliteSession:
    """The connection, while it is this thread's turn."""

    def __init__(self, db: sqlite3.Connection, wall_time: Callable[[], float]) -> None:
        self._db = db
        self._wall_time = wall_time

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        return self._execute(sql, values).fetchall()

    def run(self, sql: str, values: Sequence[Any] = ()) -> int:
        return self._execute(sql, values).rowcount

    def run_many(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        self._db.executemany(local_sql(sql), rows)

    def _execute(self, sql: str, values: Sequence[Any]) -> sqlite3.Cursor:
        text = local_sql(sql)
        if "{now}" in text:
            text = text.replace("{now}", repr(self._wall_time()))
        return self._db.execute(text, values)


class SqliteStore(base.SqlStore):
    """Keeps runs in one SQLite file."""

    add_commit = "INSERT INTO journal (run, seq, events) VALUES ($1, $2, $3)"

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
            self._db = connection.connect(self.path, busy_timeout)
        self._file = connection.OpenFile(self.path)
        # Reentrant: if Ctrl-C left it locked, its own thread can still lock it again.
        lock = threading.RLock()
        self._read = connection.Transaction(self._db, lock, self.path)
        # Without a transaction, another process could commit between two of our queries, and
        # their results would not belong to the same state.
        begin_snapshot = partial(self._db.execute, "BEGIN")
        self._snapshot = connection.Transaction(self._db, lock, self.path, begin_snapshot)
        self._write = connection.Transaction(self._db, lock, self.path, self._begin)
        no_wait, unsynced = partial(self._begin, wait=False), partial(self._begin, sync=False)
        self._write_no_wait = connection.Transaction(self._db, lock, self.path, no_wait)
        # For leases, which need no sync: other processes see them at once, and a power cut also
        # ends all the owners they are about.
        self._write_unsynced = connection.Transaction(self._db, lock, self.path, unsynced)
        self._transactions = {
            base.StoreAccess.READ: self._read,
            base.StoreAccess.WRITE: self._write,
            base.StoreAccess.LEASE: self._write_unsynced,
            base.StoreAccess.OPTIONAL: self._write_no_wait,
        }

    @property
    def label(self) -> str:
        """The file."""
        return str(self.path)

    def perform(self, access: base.StoreAccess, work: Callable[[StoreSession], base.T]) -> base.T:
        """Calls `work` once it is this thread's turn; what it writes is one transaction."""
        with self._transactions[access]:
            return work(self._session)

    @property
    def _session(self) -> _SqliteSession:
        return _SqliteSession(self._db, self.wall_time)

    def reopen(self) -> port.Store:
        """Opens the same file again, for another thread."""
        return SqliteStore(self.path, busy_timeout=self._busy_timeout)

    def local_file(self) -> Path | None:
        """Returns the database file."""
        return self.path

    # Runs

    def load(self, name: str) -> port.StoredRun:
        """Returns what a runner needs to resume a run; raises `UnknownName`."""
        with self._snapshot as db:
            row = self.named_row(name, self._session)
            seq, state = db.execute(_CHECKPOINT, (row.id,)).fetchone() or (0, None)
            return port.StoredRun(row, state, seq, self.journal(row.id, seq))

    def journal(self, run: port.RunId, after: int = 0) -> list[port.JournalRow]:
        """Returns a run's commits, oldest first."""
        rows = []
        with self._read as db:
            for seq, events, readable in db.execute(_JOURNAL, (run, after)):
                if not readable:
                    (name,) = db.execute(_NAME, (run,)).fetchone()
                    raise connection.damaged_journal(self.path, name, seq)
                rows.append(port.JournalRow(seq, events))
        return rows

    def changes(self) -> int:
        """Returns a number that differs once this or another connection has written."""
        with self._read as db:
            return self._file.changes(db) + db.total_changes

    def listener(self) -> None:
        """Returns None: SQLite sends no notifications."""

    def news(self, after: port.Position | None) -> port.News:
        """Returns what was committed after a position."""
        with self._snapshot as db:
            return read_news(db, after)

    def commit(
        self, commits: Sequence[port.Commit], *, wait: bool = True
    ) -> list[port.CommitResult]:
        """Applies the commits of several runs in one transaction, each all or nothing.

        With `wait=False` a locked database raises `StoreBusy` at once.
        """
        with self._write if wait else self._write_no_wait:
            return apply(self, self._session, commits)

    def put_texts(self, session: StoreSession, texts: Iterable[RunText]) -> None:
        """Stores texts by their digests; which runs use them is looked up when one is deleted."""
        session.run_many(_PUT_BLOB, [(bytes.fromhex(key), text) for _, key, text in texts])

    # Workers

    def claim(
        self, owner: port.Owner, capabilities: Iterable[str], alive: port.Alive, limit: int
    ) -> list[port.RunRow]:
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
            base.put_owner(owner, self._session)
            db.executemany(_CLAIM, [(owner.id, row.id) for row in found])
            return [row._replace(owner=owner.id) for row in found]

    def _claimable(
        self, db: sqlite3.Connection, owner: port.Owner, able: list[str], alive: port.Alive
    ) -> Iterator[port.RunRow]:
        """Yields the runs that this owner could claim now, the longest waiting first."""
        values = {"now": self.wall_time(), "owner": owner.id, "capabilities": json.dumps(able)}
        # Whether a process lives is asked once for each owner, however many runs it has.
        is_busy = cache(lambda other: base.living_owner(other, alive, self._session) is not None)
        for columns in db.execute(_CLAIMABLE, values):
            row = base.run_row(columns)
            if row.owner is None or not is_busy(row.owner):
                yield row

    # Upkeep

    def delete_run(self, session: StoreSession, run: port.RunId) -> None:
        """Deletes a run and the texts that no other run refers to."""
        own = self._texts_of(f" WHERE run = {int(run)}", f" WHERE id = {int(run)}")
        for statement in base.DELETE_RUN:
            session.run(statement, [run])
        # One look at what is left: to search for each text would read the whole journal for each.
        unused = own - self._texts_of("", "") if own else set()
        session.run_many(_DELETE_BLOB, [(bytes.fromhex(each),) for each in unused])

    def _texts_of(self, of_run: str, of_row: str) -> set[str]:
        """Returns the digests of the texts that some rows refer to."""
        found = {str(digest) for (digest,) in self._db.execute(f"{_DESCRIPTIONS}{of_row}")}
        for column in _WITH_REFERENCES:
            rows = self._db.execute(f"{column}{of_run}")
            found.update(references(text for (text,) in rows if text))
        return found

    def backup(self, target: Path) -> int:
        """Copies all runs to a new file while others use them; returns how many there are."""
        with translate_errors(self.path):
            # A connection of its own, so that no call has to wait for the copy.
            return connection.back_up(closing(sqlite3.connect(self.path)), target)

    def health(self) -> port.StoreHealth:
        """Checks that the file is intact."""
        with self._read as db:
            return connection.check(db, self.path)

    def close(self) -> None:
        """Closes the connection."""
        with self._read as db:
            db.close()

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


def read_news(db: sqlite3.Connection, after: port.Position | None) -> port.News:
    """Returns what was committed after a commit; with None, only how far everything is.

    A journal row gets a number above all others, so whatever has a higher one is newer. That holds
    as long as the row itself exists: once it was deleted, its number may be given out again.
    """
    newest = db.execute(_NEWEST_COMMIT).fetchone()
    last = (port.RunId(newest[0]), newest[1]) if newest else None
    others = repr((db.execute(_RUN_COUNTS).fetchall(), db.execute(_REQUEST_COUNTS).fetchone()))
    if after is None or after == last:
        return port.News(last, [], complete=True, others=others)
    place = db.execute(_COMMIT_PLACE, after).fetchone()
    if place is None:
        return port.News(last, [], complete=False, others=others)
    rows = [base.run_row(each) for each in db.execute(_RUNS_COMMITTED_AFTER, place)]
    return port.News(last, rows, complete=True, others=others)


# A store that lasts as long as its process, for tests and throwaway runs.
#
# It is the SQLite store without a file, so it behaves like the durable store in every way
# except durability.


class MemoryStore(SqliteStore):
    """Keeps runs in an in-memory database."""

    def __init__(self) -> None:
        super().__init__(connection.IN_MEMORY)
        weakref.finalize(self, _close, self._read)

    def reopen(self) -> port.Store:
        """Returns itself: another connection would see a database of its own."""
        return self

    def local_file(self) -> Path | None:
        """Returns None: no other process sees this store."""
        return None

    def backup(self, target: Path) -> int:
        """Copies all runs to a new file; returns how many there are."""
        return connection.back_up(self._read, target)

    def close(self) -> None:
        """Does nothing: the runs remain for as long as the store object exists."""


def _close(reading: connection.Transaction) -> None:
    """Closes a connection that no thread uses at the moment.

    At the end of the program the heartbeat may still read, and a connection that is closed under
    a running query crashes the interpreter.
    """
    with reading as db:
        db.close()
