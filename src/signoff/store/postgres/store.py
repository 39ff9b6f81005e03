"""The store for teams: runs in one schema of a PostgreSQL database.

It behaves like the SQLite store, for many hosts at once: row locks replace the lock of the whole
file. Every call is one statement, or a few in one transaction, so that each can be repeated when
the connection is lost, and a pooler in transaction mode may be in between.
"""

from __future__ import annotations

import json
import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signoff.core.errors import StoreBusy, StoreDamaged, StoreError, WriteFailed
from signoff.core.outcome import Status
from signoff.runtime import store_port as port
from signoff.store.base import RUN, SqlStore, StoreAccess, T, is_held, run_row
from signoff.store.commits import RunText, StoreSession, apply
from signoff.store.databases import driver, user_of
from signoff.store.postgres import connection
from signoff.store.postgres import queries as q

if TYPE_CHECKING:
    import psycopg

COMMIT_PATIENCE_SECONDS = 60.0
"""How long a commit waits for a server that restarts or fails over, before its runs stop."""

CLAIM_PATIENCE_SECONDS = 1.0
"""How long a look for work waits for a server that is away.

It holds up the event loop of a worker, and with it the calls under way. The worker itself waits
for the server for as long as it takes, without blocking anything.
"""


class PostgresStore(SqlStore):
    """Keeps runs in a schema of a PostgreSQL database."""

    # The fence tells whose commit it is, when the answer to one was lost.
    add_commit = """
    INSERT INTO {s}.journal (run, seq, events, fence)
    VALUES ($1, $2, $3, (SELECT fence FROM {s}.runs WHERE id = $1))
    """

    def __init__(
        self, address: str | connection.ServerAddress, listener: ServerListener | None = None
    ) -> None:
        """Connects, and creates the tables if there are none."""
        self._address = connection.read_address(address) if isinstance(address, str) else address
        self._server = connection.ServerConnection(self._address)
        self._listener = listener or ServerListener(self._server)
        """One for all connections of a process."""
        self._owns_listener = listener is None
        self._doubt = False
        """Whether the answer to the last commit was lost, so that it may have been applied."""
        self._claim_doubt = False
        """Whether the answer to a claim was lost, and runs that it found may still be marked."""
        self._server.open()
        if isinstance(address, str):
            try:
                self._server.perform(partial(connection.check_schema, address=self._address))
            except BaseException:
                self._server.close()
                raise

    @property
    def label(self) -> str:
        """The database and its host."""
        return self._address.label

    def perform(self, access: StoreAccess, work: Callable[[StoreSession], T]) -> T:
        """Calls `work` with a connection, again if the server was lost; writes are one transaction.

        A call that is made again finds what it has done the first time, if its commit arrived.
        """

        def in_transaction(session: connection.ServerSession) -> T:
            with session.transaction():
                return work(session)

        if access is StoreAccess.READ:
            return self._server.perform(work)
        patience = 0.0 if access is StoreAccess.OPTIONAL else connection.PATIENCE_SECONDS
        return self._server.perform(in_transaction, patience)

    def reopen(self) -> port.Store:
        """Opens another connection, for another thread."""
        return PostgresStore(self._address, self._listener)

    def local_file(self) -> Path | None:
        """Returns None: the database is on a server."""
        return None

    def load(self, name: str) -> port.StoredRun:
        """Returns what a runner needs to resume a run; raises `UnknownName`."""
        found = self._rows(q.LOAD, name)
        if not found:
            self.row(name)
            return self.load(name)  # It was created just now.
        ((seq, state, events, *values),) = found
        row, first = run_row(values), (seq or 0) + 1
        if len(events) != row.head - first + 1:
            raise StoreDamaged(
                f"{self.label} is damaged: the journal of run {name!r} has a gap; restore a backup"
            )
        tail = [port.JournalRow(number, text) for number, text in enumerate(events, first)]
        return port.StoredRun(row, state, seq or 0, tail)

    def changes(self) -> int:
        """Returns a number that differs once any transaction of the server has written.

        Raises `StoreTooNew` if a newer signoff has upgraded the tables.
        """
        ((number, version),) = self._rows(_CHANGES)
        connection.check_version(version, self._address)
        return int(number)

    def listener(self) -> port.StoreListener:
        """Returns what hears of other processes' work; behind a pooler it stays silent."""
        return self._listener

    def news(self, after: port.Position | None) -> port.News:
        """Returns what was committed after a position."""
        return self._server.perform(partial(_read_news, after))

    def commit(
        self, commits: Sequence[port.Commit], *, wait: bool = True
    ) -> list[port.CommitResult]:
        """Applies the commits of several runs in one transaction, each all or nothing.

        With `wait=False` a server that was lost raises `StoreBusy` at once.
        """
        work = partial(self._commit, commits)
        if wait:
            return self._server.perform(work, COMMIT_PATIENCE_SECONDS)
        try:
            return self._server.perform(work, 0.0)
        except WriteFailed as error:
            raise StoreBusy(str(error)) from error

    def _commit(
        self, commits: Sequence[port.Commit], session: connection.ServerSession
    ) -> list[port.CommitResult]:
        was_lost, self._doubt = self._doubt, True
        with session.transaction():
            results = apply(self, session, commits)
            if topic := _topic(commits):
                session.rows(f"SELECT {q.tell('$1')}", [topic.value])
        if was_lost:
            # What was applied before the connection was lost is refused the second time.
            results = [
                result if result.accepted else _read_back(session, commit)
                for commit, result in zip(commits, results, strict=True)
            ]
        self._doubt = False
        return results

    def claim(
        self, owner: port.Owner, capabilities: Iterable[str], alive: port.Alive, limit: int
    ) -> list[port.RunRow]:
        """Gives runs that were handed over and can continue to a worker, the oldest first."""
        claim = partial(self._claim, owner, sorted(capabilities), alive, limit)
        return self._server.perform(claim, CLAIM_PATIENCE_SECONDS)

    def _claim(
        self,
        owner: port.Owner,
        able: list[str],
        alive: port.Alive,
        limit: int,
        session: connection.ServerSession,
    ) -> list[port.RunRow]:
        # The tables may have been upgraded since this worker was started.
        connection.refuse_newer(session, self._address)
        # Only owners that are known to be dead lose a run: one that has claimed it since is none.
        settled = session.age_seconds >= SETTLED_SECONDS
        dead = [each for each in _dead(alive, session, settled) if each != owner.id]
        was_lost, self._claim_doubt = self._claim_doubt, True
        lease = [owner.id, owner.host, owner.pid, owner.born, port.LEASE_SECONDS]
        claimed = session.rows(_CLAIM, [*lease, json.dumps(able), dead, limit, was_lost])
        # Other runs, which have waited for longer, may have used up the limit.
        self._claim_doubt = was_lost and len(claimed) == limit
        return list(map(run_row, claimed))

    def put_texts(self, session: StoreSession, texts: Iterable[RunText]) -> None:
        """Stores texts, and which runs use them."""
        rows = [(run, bytes.fromhex(digest), text) for run, digest, text in texts]
        session.run_many(q.PUT_TEXT, rows)

    def delete_run(self, session: StoreSession, run: port.RunId) -> None:
        """Deletes a run and the texts that no other run refers to."""
        session.run(q.LOCK_BLOBS)
        for statement in q.DELETE_RUN:
            session.run(statement, [run])

    def backup(self, target: Path) -> int:
        """Raises `StoreError`: a server's database is backed up with the server's own tools."""
        raise StoreError(
            f"{self._address.label} is on a server, so {target.name} cannot be a copy of it; back "
            f"up the schema {self._address.schema} with pg_dump, or with the server's own backups"
        )

    def health(self) -> port.StoreHealth:
        """Reads the version and size of the tables, compares the clocks and checks the rights."""
        before = time.time()
        ((version, size, now),) = self._rows(q.HEALTH, self._address.schema)
        ahead = now - (before + time.time()) / 2
        self._server.perform(partial(connection.check_grants, address=self._address))
        where = f"schema {self._address.schema} of {self._address.label}"
        return port.StoreHealth(where, version, size or 0, ahead)

    def close(self) -> None:
        """Closes the connection, and that of the listener if this store opened it."""
        if self._owns_listener:
            self._listener.close()
        self._server.close()


_COMMITTED = """
SELECT runs.id, runs.owner, runs.fence, journal.fence, journal.events
FROM {s}.runs JOIN {s}.journal ON journal.run = runs.id AND journal.seq = $2
WHERE CASE WHEN $3::text IS NULL THEN runs.id = $1 ELSE runs.name = $3 END
"""


def _read_back(session: connection.ServerSession, commit: port.Commit) -> port.CommitResult:
    """Returns what became of a commit whose answer was lost, from what the database has now."""
    name = commit.new.name if commit.new is not None else None
    values = [commit.run, commit.head + 1, name]
    for run, owner, fence, by_fence, events in session.rows(_COMMITTED, values):
        if (by_fence, events) == (commit.fence, commit.events):
            waits = commit.release and commit.status is Status.WAITING
            wake = waits and fence == commit.fence and owner is not None
            return port.CommitResult(accepted=True, wake=wake, run=port.RunId(run))
    return port.CommitResult(accepted=False)


def _topic(commits: Sequence[port.Commit]) -> port.Topic | None:
    """Returns the topics to notify; none for a commit in the middle of a run.

    Transactions that notify are committed one after the other by the server, so few may.
    """
    if any(_gives_work(commit) for commit in commits):
        return port.Topic.WORK
    if any(each.release or each.opened or each.new is not None for each in commits):
        return port.Topic.RUNS
    return None


def _gives_work(commit: port.Commit) -> bool:
    handed_over = commit.new is not None and commit.new.needs is not None
    return handed_over or (commit.release and commit.status is Status.QUEUED)


# Runs that wait for a worker, in the PostgreSQL store.
#
# Many workers look at the queue at once. Each locks the rows it wants and skips those that another
# one has locked, so none waits for another. Whether an owner on this host is alive cannot be asked
# in SQL, so the owners are read first, and only runs of those found dead, or of none, are claimed.


SETTLED_SECONDS = 5.0
"""How long after a server came back leases that ended meanwhile are left alone.

While the server was away no owner could renew its lease, so all of them may have ended. Those
that live do so within this time; their calls under way would be made again otherwise.
"""

# Owners that are listed, and those of which only their runs are left.
_OWNERS = """
SELECT id, host, pid, born, until > {now} FROM {s}.owners
UNION ALL
SELECT DISTINCT owner, NULL, 0, NULL, false FROM {s}.runs
WHERE owner IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {s}.owners WHERE id = runs.owner)
"""
# If the answer to a claim is lost, its runs belong to a worker that does not know of them. They
# are marked until the worker takes them, so that its next claim finds them again.
# The lease is renewed only if there is something to claim. A look that wrote would be news for the
# other workers: they would look too, and idle workers would keep each other and the disk busy.
_CLAIMABLE = """
    needs::jsonb <@ $6::jsonb
    AND (owner IS NULL OR owner = ANY ($7::text[]) OR $9 AND owner = $1 AND dispatch = 'claimed')
"""
# The queue may be long: its first runs are found by an index. All others are few.
_CLAIM = f"""
WITH queued AS (
    SELECT id, updated_at FROM {{s}}.runs WHERE queued_at IS NOT NULL AND {_CLAIMABLE}
    ORDER BY queued_at, id LIMIT $8
    FOR NO KEY UPDATE SKIP LOCKED
), others AS (
    SELECT id, updated_at FROM {{s}}.runs
    WHERE id IN (
        SELECT id FROM {{s}}.runs WHERE status = 'running'
        UNION SELECT id FROM {{s}}.runs WHERE due_at <= {{now}} AND status IN ('parked', 'waiting')
        UNION SELECT run FROM {{s}}.inbox JOIN {{s}}.runs ON runs.id = run
              WHERE state = 'answered' AND status = 'waiting'
    ) AND {_CLAIMABLE}
    ORDER BY updated_at, id LIMIT $8
    FOR NO KEY UPDATE SKIP LOCKED
), found AS (
    SELECT id FROM (SELECT * FROM queued UNION ALL SELECT * FROM others) AS claimable
    ORDER BY updated_at, id LIMIT $8
), lease AS (
    INSERT INTO {{s}}.owners (id, host, pid, born, until)
    SELECT $1::text, $2::text, $3::bigint, $4::text, {{now}} + $5::float8
    WHERE EXISTS (SELECT 1 FROM found)
    ON CONFLICT (id) DO UPDATE SET host = excluded.host, pid = excluded.pid,
                                   born = excluded.born, until = excluded.until
), claimed AS (
    UPDATE {{s}}.runs SET owner = $1, dispatch = 'claimed' WHERE id IN (SELECT id FROM found)
    RETURNING {RUN}
)
SELECT * FROM claimed ORDER BY updated_at, id
"""


def _dead(alive: port.Alive, session: connection.ServerSession, settled: bool) -> list[str]:
    """Returns the owners that need not be believed alive; until settled, no lease has ended."""
    return [
        identity
        for identity, host, *others, leased in session.rows(_OWNERS)
        if host is None
        or not is_held(port.Owner(identity, host, *others), alive, leased=leased or not settled)
    ]


# The PostgreSQL store as a kind of store: how it is opened, and how its tables are set up.


DEFAULT_ROLE = "signoff"
"""Gets the rights if neither the administrator nor the address names a role."""


def set_up(url: str) -> int:
    """Creates the tables, or brings those of an older version to this one; returns its number."""
    address = connection.read_address(url)

    def migrate(session: connection.ServerSession) -> int:
        connection.refuse_newer(session, address)
        connection.migrate(session, address)
        return connection.schema_version(session)

    with closing(connection.ServerConnection(address)) as server:
        server.open()
        return server.perform(migrate)


def setup_sql(url: str, role: str) -> str:
    """Returns what an administrator runs instead, with grants for a role that changes rows."""
    address = connection.read_address(url)
    return connection.setup_sql(address, role or user_of(address.url) or DEFAULT_ROLE)


KIND = port.StoreKind(open=PostgresStore, set_up=set_up, setup_sql=setup_sql)


# What was committed since a position, in the PostgreSQL store.
#
# Transactions become visible in another order than they began in. So a journal row has the number
# of its transaction, and a position is a row below which nothing can appear any more: its number is
# smaller than that of every transaction that is still open. Rows above it may be reported again,
# and none is missed. After a restore into another server, older rows may have numbers from the
# future there: they count as old.


# A transaction that writes has a number, so a snapshot that differs is news.
_CHANGES = """
SELECT hashtextextended(pg_current_snapshot()::text, 0),
       (SELECT max(version) FROM {s}.schema_migrations)
"""

_STATE = """
SELECT (SELECT ARRAY[run, seq] FROM {s}.journal
        WHERE txid < pg_snapshot_xmin(pg_current_snapshot())
        ORDER BY txid DESC, run DESC LIMIT 1),
       (SELECT string_agg(status || ' ' || runs, ',' ORDER BY status)
        FROM (SELECT status, count(*) AS runs FROM {s}.runs GROUP BY status) AS counts),
       (SELECT concat_ws(' ', count(*), max(id), sum(id)) FROM {s}.inbox WHERE state = 'open'),
       EXISTS (SELECT 1 FROM {s}.journal WHERE run = $1 AND seq = $2
               AND txid < pg_snapshot_xmax(pg_current_snapshot()))
"""
_COMMITTED_AFTER = f"""
SELECT {RUN} FROM {{s}}.runs WHERE id IN (
    SELECT newer.run FROM {{s}}.journal AS newer JOIN {{s}}.journal AS seen
    ON (newer.txid, newer.run) > (seen.txid, seen.run)
       AND newer.txid < pg_snapshot_xmax(pg_current_snapshot())
    WHERE seen.run = $1 AND seen.seq = $2
) ORDER BY id
"""


def _read_news(after: port.Position | None, session: connection.ServerSession) -> port.News:
    """Returns what was committed after a commit; with None, only how far everything is."""
    values = list(after or (0, 0))
    # The position is read first: what is committed in between is then reported twice, not never.
    ((last, runs, requests, known),), rows = session.together(
        (_STATE, values), (_COMMITTED_AFTER, values)
    )
    return port.News(
        (port.RunId(last[0]), last[1]) if last else None,
        list(map(run_row, rows)),
        complete=after is None or known,
        others=f"{runs}; {requests}",
    )


# Receives the server's notifications: LISTEN on a connection of its own.
#
# A statement that hands over, answers, cancels, creates or releases a run also sends a NOTIFY.
# Ordinary commits do not: the server commits transactions that notify one after the other, and
# eight processes together would make only a fifth of the commits.
#
# A message means "look again" and carries no data. A lost one costs time and nothing else, because
# subscribers still poll now and then. Poolers in transaction mode lose all of them; one is
# recognized when the store is opened, and then nothing listens.


_RETRY_SECONDS = 1.0
_JOIN_SECONDS = 2.0
_ALL = frozenset(port.Topic)


_Subscription = tuple[frozenset[port.Topic], Callable[[], object]]


class ServerListener:
    """Calls subscribers, in a thread, whenever a message arrives; starts with the first of them."""

    def __init__(self, server: connection.ServerConnection) -> None:
        self._server = server
        self._channel = q.channel_of(server.address.schema)
        self._lock = threading.Lock()
        self._subscriptions: list[_Subscription] = []
        self._thread: threading.Thread | None = None
        self._closed = False
        self._wake: socket.socket | None = None
        """Closed to end the thread."""
        self._live = threading.Event()

    @property
    def is_live(self) -> bool:
        """Whether messages arrive now."""
        return self._live.is_set()

    def subscribe(
        self, topics: Collection[port.Topic], hear: Callable[[], object]
    ) -> Callable[[], None]:
        """Calls `hear` for each message about a topic; returns what ends that."""
        subscription = (frozenset(topics), hear)
        with self._lock:
            self._subscriptions.append(subscription)
            # A pooler is recognized when the store is opened, and there nothing would arrive.
            if self._thread is None and not self._closed and not self._server.is_pooled:
                self._start()
            is_late = self._live.is_set()
        if is_late:
            hear()
        return partial(self._subscriptions.remove, subscription)

    def close(self) -> None:
        """Ends the thread and its connection."""
        with self._lock:
            self._closed = True
        if self._thread is not None and self._wake is not None:
            self._wake.close()
            # It may be connecting, which nothing interrupts.
            self._thread.join(_JOIN_SECONDS)

    def _start(self) -> None:
        self._wake, woken = socket.socketpair()
        self._thread = threading.Thread(
            target=self._run, args=(woken,), name="signoff-listener", daemon=True
        )
        self._thread.start()

    def _run(self, woken: socket.socket) -> None:
        # A signal has to reach the main thread, which waits for it.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        with woken:
            while not self._closed:
                # While the server restarts or fails over, subscribers poll.
                with suppress(driver().Error, StoreError), self._server.another() as db:
                    db.execute(f'LISTEN "{self._channel}"')
                    self._become(live=True)
                    while not self._closed:
                        self._tell(_messages(db, woken), list(self._subscriptions))
                if self._live.is_set():
                    self._become(live=False)
                _wait([woken], _RETRY_SECONDS)

    def _become(self, *, live: bool) -> None:
        """Wakes every subscriber when messages start or stop arriving; some may have been lost.

        A subscriber that joins at the same moment is woken once, here or by `subscribe`.
        """
        with self._lock:
            (self._live.set if live else self._live.clear)()
            subscriptions = list(self._subscriptions)
        self._tell(_ALL, subscriptions)

    def _tell(self, topics: Collection[str], subscriptions: Iterable[_Subscription]) -> None:
        for topics_of, hear in subscriptions:
            # A loop that has just been closed cannot be called any more.
            if not topics_of.isdisjoint(topics):
                with suppress(RuntimeError):
                    hear()


def _messages(db: psycopg.Connection[Any], woken: socket.socket) -> set[str]:
    """Waits for messages, or until the end of this process's interest, when `woken` is readable."""
    _wait([db, woken], None)
    db.pgconn.consume_input()
    messages = set()
    while (note := db.pgconn.notifies()) is not None:
        messages.add(note.extra.decode())
    return messages


def _wait(sources: Sequence[Any], seconds: float | None) -> None:
    """Waits until one of these can be read; unlike `select`, with any number of open files."""
    with selectors.DefaultSelector() as selector:
        for source in sources:
            selector.register(source, selectors.EVENT_READ)
        selector.select(seconds)
