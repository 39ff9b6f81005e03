"""The store for teams: runs in one schema of a PostgreSQL database.

It behaves like the SQLite store, for many hosts at once. Every commit is one statement that
compares the head and the fence of each run; row locks replace the lock of the whole file. All
other calls are one statement too, or a few in one transaction, so that each can be repeated when
the connection is lost, and a pooler in transaction mode may be in between.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NoReturn

from signoff.core.digest import text_digest
from signoff.core.outcome import Status
from signoff.core.requests import ItemState
from signoff.core.spend import LedgerEntry
from signoff.databases import user_of
from signoff.errors import StoreBusy, StoreDamaged, StoreError, UnknownName, WriteFailed
from signoff.runtime.store_port import (
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
    StoreKind,
    StoreListener,
    WorkerRow,
)
from signoff.store.postgres import leases, schema
from signoff.store.postgres import queries as q
from signoff.store.postgres.commits import apply, read_back
from signoff.store.postgres.connection import (
    PATIENCE_SECONDS,
    Row,
    ServerAddress,
    ServerConnection,
    ServerSession,
    check_grants,
    read_address,
)
from signoff.store.postgres.leases import RunQueue
from signoff.store.postgres.listener import ServerListener
from signoff.store.postgres.queries import restored_text, stored_text
from signoff.store.postgres.schema import check_schema, check_version
from signoff.store.postgres.transfer import PostgresTransfer
from signoff.store.queries import replace_surrogates
from signoff.store.rows import (
    inbox_item,
    inbox_lines,
    refuse_answer,
    request_id,
    run_row,
    unknown_run,
    worker_rows,
)

COMMIT_PATIENCE_SECONDS = 60.0
"""How long a commit waits for a server that restarts or fails over, before its runs stop."""

CLAIM_PATIENCE_SECONDS = 1.0
"""How long a look for work waits for a server that is away.

It holds up the event loop of a worker, and with it the calls under way. The worker itself waits
for the server for as long as it takes, without blocking anything.
"""


class PostgresStore:
    """Keeps runs in a schema of a PostgreSQL database."""

    def __init__(
        self, address: str | ServerAddress, listener: ServerListener | None = None
    ) -> None:
        """Connects, and creates the tables if there are none."""
        self._address = read_address(address) if isinstance(address, str) else address
        self._server = ServerConnection(self._address)
        self._listener = listener or ServerListener(self._server)
        """One for all connections of a process."""
        self._owns_listener = listener is None
        self._queue = RunQueue(self._address)
        self._doubt = False
        """Whether the answer to the last commit was lost, so that it may have been applied."""
        self._server.open()
        if isinstance(address, str):
            try:
                self._server.perform(partial(check_schema, address=self._address))
            except BaseException:
                self._server.close()
                raise

    def reopen(self) -> Store:
        """Opens another connection, for another thread."""
        return PostgresStore(self._address, self._listener)

    def local_file(self) -> Path | None:
        """Returns None: the database is on a server."""
        return None

    # Runs

    def load(self, name: str) -> StoredRun:
        """Returns what a runner needs to resume a run; raises `UnknownName`."""
        found = self._rows(q.LOAD, name)
        if not found:
            self._unknown_run(name)
        ((seq, state, events, *values),) = found
        row, first = self._run_row(values), (seq or 0) + 1
        if len(events) != row.head - first + 1:
            raise self._damaged(f"the journal of run {name!r} has a gap")
        tail = [JournalRow(number, text) for number, text in enumerate(events, first)]
        return StoredRun(row, state, seq or 0, tail)

    def row(self, name: str) -> RunRow:
        """Returns one run; raises `UnknownName`."""
        found = self._rows(q.RUN_BY_NAME, stored_text(name))
        if not found:
            self._unknown_run(name)
        return self._run_row(found[0])

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
        """Returns runs, newest first; `before` continues after the last one of a page."""
        where, values = q.run_conditions(status, due_before, workflow, text, before)
        sql = q.RUNS.replace("{where}", where).replace("{limit}", f"${len(values) + 1}::bigint")
        rows = self._rows(sql, *values, limit if limit >= 0 else None)
        return list(map(self._run_row, rows))

    def journal(self, run: RunId, after: int = 0) -> list[JournalRow]:
        """Returns a run's commits, oldest first."""
        return list(map(JournalRow._make, self._rows(q.JOURNAL, run, after)))

    def changes(self) -> int:
        """Returns a number that differs once any transaction of the server has written.

        Raises `StoreTooNew` if a newer signoff has upgraded the tables.
        """
        ((number, version),) = self._rows(CHANGES)
        check_version(version, self._address)
        return int(number)

    def listener(self) -> StoreListener:
        """Returns what hears of other processes' work; behind a pooler it stays silent."""
        return self._listener

    def news(self, after: Position | None) -> News:
        """Returns what was committed after a position."""
        return self._server.perform(partial(read_news, after))

    def description(self, run: RunId) -> str:
        """Returns the definition the run was started with, as JSON."""
        return restored_text(str(self._one(q.DESCRIPTION, run)[0]))

    def blob(self, digest: str) -> str:
        """Returns a text stored as a blob."""
        return restored_text(str(self._one(q.BLOB, bytes.fromhex(digest))[0]))

    def adopt(self, run: RunId, definition: str, description: str) -> None:
        """Replaces a run's frozen definition."""
        key = bytes.fromhex(text_digest(description))
        self._run(q.ADOPT, run, key, stored_text(description), definition)

    # The journal

    def commit(self, commits: Sequence[Commit], *, wait: bool = True) -> list[CommitResult]:
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

    def _commit(self, commits: Sequence[Commit], session: ServerSession) -> list[CommitResult]:
        was_lost, self._doubt = self._doubt, True
        results = apply(session, commits)
        if was_lost:
            # What was applied before the connection was lost is refused the second time.
            results = [
                result if result.accepted else read_back(session, commit)
                for commit, result in zip(commits, results, strict=True)
            ]
        self._doubt = False
        return results

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
        return self._server.perform(partial(leases.take, run, owner, alive, lease_seconds, token))

    def beat(self, owner: Owner, lease_seconds: float = LEASE_SECONDS) -> None:
        """Renews all of an owner's leases at once."""
        sql, values = leases.put_owner(owner, lease_seconds)
        self._run(sql, *values)

    def enqueue(self, run: RunId, needs: Sequence[str], alive: Alive) -> bool:
        """Hands a run to workers; False if it has ended or a process drives it."""
        return self._server.perform(partial(leases.enqueue, run, needs, alive))

    def claim(
        self, owner: Owner, capabilities: Iterable[str], alive: Alive, limit: int
    ) -> list[RunRow]:
        """Gives runs that were handed over and can continue to a worker, the oldest first."""
        claim = partial(self._queue.claim, owner, sorted(capabilities), alive, limit)
        return self._server.perform(claim, CLAIM_PATIENCE_SECONDS)

    def register(self, owner: Owner, slots: int, capabilities: Iterable[str]) -> int:
        """Lists an owner as a worker until it leaves; returns its number."""
        return self._server.perform(partial(leases.register, owner, slots, sorted(capabilities)))

    def workers(self, alive: Alive) -> list[WorkerRow]:
        """Returns the workers that have not left, the oldest first."""
        return worker_rows(self._rows(leases.WORKERS), alive)

    def cancels(self, owner: Owner) -> list[tuple[str, str]]:
        """Returns (run, reason) for each run of an owner that a user asked to cancel."""
        return [(run, restored_text(why)) for run, why in self._rows(q.CANCELS, owner.id)]

    def leave(self, owner: Owner) -> None:
        """Releases the runs of an owner that ends, and removes the owner."""
        statements = (q.DROP_LEASES, q.DROP_OWNER, q.DROP_WORKER)
        parts = [(statement, [owner.id]) for statement in statements]
        self._server.perform(lambda session: session.together(*parts))

    def owner(self, identity: str, alive: Alive) -> Owner | None:
        """Returns a process that drives runs; None if it has ended."""
        return self._server.perform(partial(leases.living_owner, identity, alive))

    def ask_cancel(self, run: RunId, why: str) -> None:
        """Asks the run's owner to cancel it."""
        self._run(q.ASK_CANCEL, run, stored_text(replace_surrogates(why)))

    # Requests to humans

    def items(
        self, run: str | None = None, *, state: Sequence[ItemState] = (ItemState.OPEN,)
    ) -> list[InboxItem]:
        """Returns requests to humans, oldest first."""
        states = [each.value for each in state]
        return list(map(_item, self._rows(q.ITEMS, states, run)))

    def waiting(self) -> list[InboxLine]:
        """Returns what a list shows of every open request, oldest first."""
        lines = inbox_lines(self._rows(q.WAITING))
        return [line._replace(prompt=restored_text(line.prompt)) for line in lines]

    def item(self, number: int) -> InboxItem:
        """Returns one request; raises `UnknownName`."""
        return self._server.perform(partial(self._item, number))

    def answer(self, number: int, answer: str, by: str, at: float, digest: str) -> InboxItem:
        """Stores the answer to an open request; raises `InvalidAnswer` or `StaleApproval`."""
        values = (answer, replace_surrogates(by), at)
        return self._server.perform(partial(self._answer, number, values, digest))

    def _answer(
        self, number: int, values: tuple[str, str, float], digest: str, session: ServerSession
    ) -> InboxItem:
        answer, by, at = values
        stored = [request_id(number), stored_text(answer), stored_text(by), at, digest]
        while True:
            for *changed, _told in session.rows(q.ANSWER, stored):
                return _item(changed)
            item = self._item(number, session)
            # When the connection was lost after the answer was stored, it is our own that is found.
            if (item.answer, item.answered_by, item.answered_at) == values:
                return item
            # A request that was opened only now is not refused, and is found by the next try.
            refuse_answer(item, digest)

    def _item(self, number: int, session: ServerSession) -> InboxItem:
        for values in session.rows(q.ITEM, [request_id(number)]):
            return _item(values)
        open_items = session.rows(q.OPEN_NUMBERS)
        raise UnknownName("request", f"#{number}", [f"#{each}" for (each,) in open_items])

    # Spend

    def ledger(self, run: RunId) -> list[LedgerEntry]:
        """Returns what a run's calls cost, by step and agent."""
        rows = self._rows(q.LEDGER, run)
        return [LedgerEntry._make((*map(restored_text, row[:3]), *row[3:])) for row in rows]

    def ledger_totals(self, since: float) -> list[LedgerTotal]:
        """Returns what the runs updated since a time cost, by workflow, agent and model."""
        rows = self._rows(q.LEDGER_TOTALS, since)
        return [LedgerTotal._make((*map(restored_text, row[:3]), *row[3:])) for row in rows]

    def summaries(self, version: int) -> dict[RunId, str]:
        """Returns the summaries of runs that have not changed since."""
        return {RunId(run): summary for run, summary in self._rows(q.SUMMARIES, version)}

    def keep_summaries(self, version: int, summaries: Iterable[tuple[RunId, int, str]]) -> None:
        """Stores summaries, each with the commit up to which it was computed."""
        columns = [list(column) for column in zip(*summaries, strict=True)]
        if columns:
            self._run(q.PUT_SUMMARIES, *columns, version, patience=0.0)

    def keep_late(self, run: RunId, effect: str, attempt: int, outcome: str) -> None:
        """Stores a reply that a runner received after it lost its run."""
        self._run(q.KEEP_LATE, run, effect, attempt, stored_text(outcome))

    def late(self, run: RunId) -> dict[tuple[str, int], str]:
        """Returns the late replies of a run, by effect and attempt."""
        rows = self._rows(q.LATE, run)
        return {(effect, n): restored_text(outcome) for effect, n, outcome in rows}

    # Upkeep

    def delete(self, run: RunId, alive: Alive) -> None:
        """Deletes a run and what only it used; raises `RunBusy` if a process drives it."""
        self._server.perform(partial(self._delete, run, alive))

    def _delete(self, run: RunId, alive: Alive, session: ServerSession) -> None:
        with session.transaction():
            for values in session.rows(q.LOCK_RUN, [run]):
                row = self._run_row(values)
                leases.refuse_if_alive(row, alive, session)
            session.run(q.LOCK_BLOBS)
            for statement in (q.DELETE_BLOBS, *q.DELETE_RUN):
                session.run(statement, [run])

    def backup(self, target: Path) -> int:
        """Raises `StoreError`: a server's database is backed up with the server's own tools."""
        raise StoreError(
            f"{self._address.label} is on a server, so {target.name} cannot be a copy of it; back "
            f"up the schema {self._address.schema} with pg_dump, or with the server's own backups"
        )

    def transfer(self) -> RunTransfer:
        """Returns what moves runs to this store or away from it."""
        return PostgresTransfer(self._server)

    def health(self) -> StoreHealth:
        """Reads the version and size of the tables, compares the clocks and checks the rights."""
        before = time.time()
        ((version, size, now),) = self._rows(q.HEALTH, self._address.schema)
        ahead = now - (before + time.time()) / 2
        self._server.perform(partial(check_grants, address=self._address))
        where = f"schema {self._address.schema} of {self._address.label}"
        return StoreHealth(where, version, size or 0, ahead)

    def close(self) -> None:
        """Closes the connection, and that of the listener if this store opened it."""
        if self._owns_listener:
            self._listener.close()
        self._server.close()

    # Statements

    def _rows(self, statement: str, *values: object) -> list[Row]:
        return self._server.perform(lambda session: session.rows(statement, values))

    def _run(self, statement: str, *values: object, patience: float = PATIENCE_SECONDS) -> None:
        self._server.perform(lambda session: session.run(statement, values), patience)

    def _one(self, statement: str, *values: object) -> Row:
        found = self._rows(statement, *values)
        if not found:
            raise self._damaged("it lacks data that a run refers to")
        return found[0]

    def _damaged(self, problem: str) -> StoreDamaged:
        return StoreDamaged(f"{self._address.label} is damaged: {problem}; restore a backup")

    def _unknown_run(self, name: str) -> NoReturn:
        known = [each for (each,) in self._rows(q.RUN_NAMES)]
        raise unknown_run(name, self.transfer().moved(name), known)

    def _run_row(self, values: Iterable[object]) -> RunRow:
        row = run_row(values)
        return row._replace(reason=restored_text(row.reason), cancel=restored_text(row.cancel))


def _item(values: Sequence[object]) -> InboxItem:
    item = inbox_item(values)
    return item._replace(
        prompt=restored_text(item.prompt),
        form=restored_text(item.form),
        answer=restored_text(item.answer),
        answered_by=restored_text(item.answered_by),
    )


# The PostgreSQL store as a kind of store: how it is opened, and how its tables are set up.


DEFAULT_ROLE = "signoff"
"""Gets the rights if neither the administrator nor the address names a role."""


def set_up(url: str) -> int:
    """Creates the tables, or brings those of an older version to this one; returns its number."""
    address = read_address(url)

    def migrate(session: ServerSession) -> int:
        schema.refuse_newer(session, address)
        schema.migrate(session, address)
        return schema.schema_version(session)

    with closing(ServerConnection(address)) as server:
        server.open()
        return server.perform(migrate)


def setup_sql(url: str, role: str) -> str:
    """Returns what an administrator runs instead, with grants for a role that changes rows."""
    address = read_address(url)
    return schema.setup_sql(address, role or user_of(address.url) or DEFAULT_ROLE)


KIND = StoreKind(open=PostgresStore, set_up=set_up, setup_sql=setup_sql)


# What was committed since a position, in the PostgreSQL store.
#
# Transactions become visible in another order than they began in. So a journal row has the number
# of its transaction, and a position is a row below which nothing can appear any more: its number is
# smaller than that of every transaction that is still open. Rows above it may be reported again,
# and none is missed. After a restore into another server, older rows may have numbers from the
# future there: they count as old.


# A transaction that writes has a number, so a snapshot that differs is news.
CHANGES = """
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
SELECT {q.RUN} FROM {{s}}.runs WHERE id IN (
    SELECT newer.run FROM {{s}}.journal AS newer JOIN {{s}}.journal AS seen
    ON (newer.txid, newer.run) > (seen.txid, seen.run)
       AND newer.txid < pg_snapshot_xmax(pg_current_snapshot())
    WHERE seen.run = $1 AND seen.seq = $2
) ORDER BY id
"""


def read_news(after: Position | None, session: ServerSession) -> News:
    """Returns what was committed after a commit; with None, only how far everything is."""
    values = list(after or (0, 0))
    # The position is read first: what is committed in between is then reported twice, not never.
    ((last, runs, requests, known),), rows = session.together(
        (_STATE, values), (_COMMITTED_AFTER, values)
    )
    return News(
        (RunId(last[0]), last[1]) if last else None,
        list(map(run_row, rows)),
        complete=after is None or known,
        others=f"{runs}; {requests}",
    )
