"""What every store does alike: its statements, and the calls that consist of them.

A store adds what its database does in its own way: how a call gets its turn, how commits are
applied, how runs are claimed and deleted, and what has changed. All other SQL is here, once. Each
session writes it in its database's dialect: `$1` is a value, `{s}.` stands before a table, `{now}`
is the clock by which leases are judged, `{position}` finds a text in another, `{lock}` keeps others
from changing the rows that were read until the call has ended, and `{tell work}` notifies other
processes of a topic.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, StrEnum
from functools import cache, partial
from typing import Any, TypeVar

from signoff.core import errors
from signoff.core.digest import text_digest
from signoff.core.outcome import FINAL, Status
from signoff.core.remedies import CancelRun, ShowInbox
from signoff.core.requests import ItemState, RequestKind
from signoff.core.spend import LedgerEntry
from signoff.runtime import store_port as port
from signoff.runtime.run_transfer import RunCopy, parse_copy
from signoff.runtime.store_port import Alive, InboxItem, Owner, RunId, RunRow
from signoff.store import commits

T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)

RENEWED_SECONDS = port.LEASE_SECONDS - port.SILENT_SECONDS
"""How much is left of the lease of an owner that is not silent."""

_RUN_DATA = (
    "name, workflow, target, definition, {0}status, step, iteration, reason, due_at, created_at, "
    "updated_at, head, fence, {1}needs"
)
RUN = f"id, {_RUN_DATA.format('', 'owner, cancel, ')}"
"""The columns of a `RunRow`."""
_ITEM_DATA = (
    "name, effect, kind, prompt, form, digest, step, opened_at, deadline, "
    "state, answer, answered_by, answered_at"
)

_RUN_BY_NAME = f"SELECT {RUN} FROM {{s}}.runs WHERE name = $1"
_LOCK_RUN = f"SELECT dispatch, attempt, {RUN} FROM {{s}}.runs WHERE id = $1{{lock}}"
_RUN_NAMES = "SELECT name FROM {s}.runs ORDER BY id DESC LIMIT 12"
_SEARCHED = ("name", "workflow", "reason")
_DESCRIPTION = """
SELECT blobs.text FROM {s}.runs JOIN {s}.blobs ON blobs.digest = runs.description
WHERE runs.id = $1
"""
_JOURNAL = "SELECT seq, events FROM {s}.journal WHERE run = $1 AND seq > $2 ORDER BY seq"
_BLOB = "SELECT text FROM {s}.blobs WHERE digest = $1"
_ADOPT = "UPDATE {s}.runs SET definition = $2, description = $3 WHERE id = $1"
_ITEMS = f"SELECT id, {_ITEM_DATA} FROM {{s}}.inbox WHERE "
_WAITING = """
SELECT id, name, step, kind, prompt, opened_at, deadline
FROM {s}.inbox WHERE state = 'open' ORDER BY id
"""
_OPEN_NUMBERS = "SELECT id FROM {s}.inbox WHERE state = 'open' ORDER BY id LIMIT 12"
# An answer locks the run's row first, as a commit does: a run that is about to wait either sees the
# answer or is seen waiting.
_LOCK_RUN_OF = """
SELECT id FROM {s}.runs WHERE id = (SELECT run FROM {s}.inbox WHERE id = $1){lock}
"""
_ANSWER = """
UPDATE {s}.inbox SET state = 'answered', answer = $2, answered_by = $3, answered_at = $4
WHERE id = $1{tell work}
"""
_LEDGER = f"""
SELECT step, agent, model, {commits.COSTS} FROM {{s}}.ledger WHERE run = $1
ORDER BY step, agent, model
"""
_TOTALS = ", ".join(f"sum({name})" if name == "usd" else f"{{sum {name}}}" for name in commits.SUMS)
_LEDGER_TOTALS = f"""
SELECT runs.workflow, agent, model, count(DISTINCT run), {_TOTALS}
FROM {{s}}.ledger JOIN {{s}}.runs ON runs.id = ledger.run
WHERE runs.updated_at >= $1 GROUP BY 1, 2, 3
ORDER BY sum(usd) DESC, sum(tokens_out) DESC, 1, 2, 3
"""
_SUMMARIES = """
SELECT run, summary FROM {s}.run_summaries JOIN {s}.runs ON runs.id = run AND runs.head = seq
WHERE version = $1
"""
_PUT_SUMMARY = """
INSERT INTO {s}.run_summaries (run, seq, version, summary) VALUES ($1, $2, $3, $4)
ON CONFLICT (run) DO UPDATE
SET seq = excluded.seq, version = excluded.version, summary = excluded.summary
"""
_KEEP_LATE = """
INSERT INTO {s}.late (run, effect, attempt, outcome) VALUES ($1, $2, $3, $4)
ON CONFLICT (run, effect, attempt) DO UPDATE SET outcome = excluded.outcome
"""
_LATE = "SELECT effect, attempt, outcome FROM {s}.late WHERE run = $1"

_OWNER = "SELECT id, host, pid, born, until > {now} + $2 FROM {s}.owners WHERE id = $1"
_PUT_OWNER = """
INSERT INTO {s}.owners (id, host, pid, born, until) VALUES ($1, $2, $3, $4, {now} + $5)
ON CONFLICT (id) DO UPDATE SET host = excluded.host, pid = excluded.pid, born = excluded.born,
                               until = excluded.until
"""
_TAKE = """
UPDATE {s}.runs SET owner = $1, fence = fence + 1, cancel = NULL, dispatch = $3, attempt = $4
WHERE id = $2
"""
_ENQUEUE = """
UPDATE {s}.runs SET status = 'queued', reason = '', due_at = NULL, owner = NULL, needs = $2,
                    updated_at = {now}
WHERE id = $1{tell work}
"""
_FORGET_OWNERS = """
DELETE FROM {s}.owners
WHERE until < {now} - $1 AND NOT EXISTS (SELECT 1 FROM {s}.runs WHERE owner = owners.id)
"""
_FORGET_WORKERS = "DELETE FROM {s}.workers WHERE owner NOT IN (SELECT id FROM {s}.owners)"
_REGISTER = """
INSERT INTO {s}.workers (owner, slots, capabilities, started_at) VALUES ($1, $2, $3, {now})
ON CONFLICT (owner) DO UPDATE SET slots = excluded.slots, capabilities = excluded.capabilities
"""
_WORKER_NUMBER = "SELECT number FROM {s}.workers WHERE owner = $1"
_WORKERS = """
SELECT number, owners.id, host, pid, born, slots,
       (SELECT count(*) FROM {s}.runs WHERE runs.owner = owners.id), capabilities, started_at,
       until > {now}
FROM {s}.workers JOIN {s}.owners ON owners.id = workers.owner ORDER BY number
"""
_LEAVE = (
    "UPDATE {s}.runs SET owner = NULL WHERE owner = $1{tell work}",
    "DELETE FROM {s}.owners WHERE id = $1",
    "DELETE FROM {s}.workers WHERE owner = $1",
)
_CANCELS = "SELECT name, cancel FROM {s}.runs WHERE owner = $1 AND cancel IS NOT NULL"
_ASK_CANCEL = "UPDATE {s}.runs SET cancel = $2 WHERE id = $1{tell cancel}"
_TABLES = ("journal", "checkpoints", "inbox", "ledger", "late", "run_summaries")
DELETE_RUN = (*(f"DELETE FROM {{s}}.{name} WHERE run = $1" for name in _TABLES),
              "DELETE FROM {s}.runs WHERE id = $1")  # fmt: skip

_STAGE = """
INSERT INTO {s}.arrivals (name, document) VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET document = excluded.document
"""
_STAGED = "SELECT document FROM {s}.arrivals WHERE name = $1"


_ADMIT_RUN = commits.insert_into("runs", _RUN_DATA.format("description, ", ""))
_ADMIT_ITEM = commits.insert_into("inbox", f"run, {_ITEM_DATA}")
_ARRIVED = (
    "DELETE FROM {s}.arrivals WHERE name = $1",
    "DELETE FROM {s}.moved WHERE name = $1",
)
_NAME_AT_FENCE = "SELECT name FROM {s}.runs WHERE id = $1 AND fence = $2{lock}"
_REQUEST_STATES = "SELECT id, state FROM {s}.inbox WHERE run = $1 ORDER BY id"
_REMEMBER_MOVE = """
INSERT INTO {s}.moved (name, target, moved_at) VALUES ($1, $2, {now})
ON CONFLICT (name) DO UPDATE SET target = excluded.target, moved_at = excluded.moved_at
"""
_MOVED = "SELECT target FROM {s}.moved WHERE name = $1"


class StoreAccess(Enum):
    """What a call does, which decides for what it waits and what a power cut may undo."""

    READ = "read"
    WRITE = "write"
    LEASE = "lease"
    """Writes about owners: a power cut ends them too, so nothing of it has to reach the disk."""
    OPTIONAL = "optional"
    """Writes what can be computed again, so it waits for no other process."""


class SqlStore(ABC):
    """The calls that all stores answer alike; `Store` describes them."""

    add_commit: str
    """The statement that inserts a run, a number and the events of a commit."""

    @property
    @abstractmethod
    def label(self) -> str:
        """The database, for messages."""

    @abstractmethod
    def perform(self, access: StoreAccess, work: Callable[[commits.StoreSession], T]) -> T:
        """Calls `work` with a session; where a connection can be lost, perhaps again."""

    @abstractmethod
    def put_texts(self, session: commits.StoreSession, texts: Iterable[commits.RunText]) -> None:
        """Stores texts, each for a run that uses it."""

    @abstractmethod
    def delete_run(self, session: commits.StoreSession, run: RunId) -> None:
        """Deletes a run and the texts that no other run refers to."""

    def _rows(self, sql: str, *values: object) -> list[commits.Row]:
        return self.perform(StoreAccess.READ, lambda session: session.rows(sql, values))

    def _run(self, sql: str, *values: object, access: StoreAccess = StoreAccess.WRITE) -> None:
        self.perform(access, lambda session: session.run(sql, values))

    def _one(self, sql: str, *values: object) -> Any:
        """Returns the first column of a row that has to be there."""
        found = self._rows(sql, *values)
        if not found:
            raise self.lacks_data()
        return found[0][0]

    def lacks_data(self) -> errors.StoreDamaged:
        """Returns the error for a database without a row that another one refers to."""
        return errors.StoreDamaged(
            f"{self.label} lacks data that a run refers to; restore a backup"
        )

    # Runs

    def row(self, name: str) -> RunRow:
        """Returns one run; raises `UnknownName`."""
        return self.perform(StoreAccess.READ, partial(self.named_row, name))

    def named_row(self, name: str, session: commits.StoreSession) -> RunRow:
        """Returns one run; raises `UnknownName`, or `RunMoved` if it is in another store now."""
        for values in session.rows(_RUN_BY_NAME, [name]):
            return run_row(values)
        for (target,) in session.rows(_MOVED, [name]):
            raise errors.RunMoved(name, target)
        raise errors.UnknownName("run", name, [each for (each,) in session.rows(_RUN_NAMES)])

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
        values: list[object] = []
        conditions = ["1 = 1"]
        if status:
            conditions.append(f"status IN ({_places(values, map(str, status))})")
        if due_before is not None:
            conditions.append(f"due_at <= {_places(values, [due_before])}")
        if workflow:
            name = commits.replace_refused(workflow)
            conditions.append(f"workflow = {_places(values, [name])}")
        if text:
            # Not LIKE: a text with a percent sign means itself.
            part = _places(values, [commits.replace_refused(text.lower())])
            found = (f"{{position}}(lower({each}), {part}) > 0" for each in _SEARCHED)
            conditions.append(f"({' OR '.join(found)})")
        if before is not None:
            conditions.append(f"id < {_places(values, [before])}")
        sql = f"SELECT {RUN} FROM {{s}}.runs WHERE {' AND '.join(conditions)} ORDER BY id DESC"
        if limit >= 0:
            sql += f" LIMIT {_places(values, [limit])}"
        return list(map(run_row, self._rows(sql, *values)))

    def journal(self, run: RunId, after: int = 0) -> list[port.JournalRow]:
        """Returns a run's commits, oldest first."""
        return list(map(port.JournalRow._make, self._rows(_JOURNAL, run, after)))

    def description(self, run: RunId) -> str:
        """Returns the definition the run was started with, as JSON."""
        return str(self._one(_DESCRIPTION, run))

    def blob(self, digest: str) -> str:
        """Returns a text stored as a blob."""
        return str(self._one(_BLOB, bytes.fromhex(digest)))

    def adopt(self, run: RunId, definition: str, description: str) -> None:
        """Replaces a run's frozen definition."""
        key = text_digest(description)

        def work(session: commits.StoreSession) -> None:
            self.put_texts(session, [(run, key, description)])
            session.run(_ADOPT, [run, definition, bytes.fromhex(key)])

        self.perform(StoreAccess.WRITE, work)

    # Leases. The row of a run is locked before it is looked at: of several that take a run at once,
    # each sees what the one before it did, and each gets a fence of its own.

    def take(
        self,
        run: RunId,
        owner: Owner,
        alive: Alive,
        *,
        lease_seconds: float = port.LEASE_SECONDS,
        token: port.DispatchToken | None = None,
    ) -> int:
        """Gives the run to an owner and returns the new fence; raises `RunBusy`."""

        def work(session: commits.StoreSession) -> int:
            row, last = self._locked(run, session)
            if row.owner != owner.id:
                is_later = _is_later_attempt(row, token, last)
                _refuse_if_alive(row, alive, session, is_later=is_later)
            put_owner(owner, session, lease_seconds)
            session.run(_TAKE, [owner.id, run, *(token or (None, None))])
            return row.fence + 1

        return self.perform(StoreAccess.LEASE, work)

    def beat(self, owner: Owner, lease_seconds: float = port.LEASE_SECONDS) -> None:
        """Renews all of an owner's leases at once."""
        self.perform(StoreAccess.LEASE, lambda session: put_owner(owner, session, lease_seconds))

    def enqueue(self, run: RunId, needs: Sequence[str], alive: Alive) -> bool:
        """Hands a run to workers; False if it has ended or a process drives it."""

        def work(session: commits.StoreSession) -> bool:
            row, _ = self._locked(run, session)
            if row.status in FINAL or living_owner(row.owner, alive, session):
                return False
            session.run(_ENQUEUE, [run, json.dumps(needs)])
            return True

        return self.perform(StoreAccess.WRITE, work)

    def register(self, owner: Owner, slots: int, capabilities: Iterable[str]) -> int:
        """Lists an owner as a worker until it leaves; returns its number."""
        able = json.dumps(sorted(capabilities))

        def work(session: commits.StoreSession) -> int:
            put_owner(owner, session)
            session.run(_FORGET_OWNERS, [port.FORGOTTEN_SECONDS])
            session.run(_FORGET_WORKERS)
            session.run(_REGISTER, [owner.id, slots, able])
            ((number,),) = session.rows(_WORKER_NUMBER, [owner.id])
            return int(number)

        return self.perform(StoreAccess.LEASE, work)

    def workers(self, alive: Alive) -> list[port.WorkerRow]:
        """Returns the workers that have not left, the oldest first."""
        workers = []
        for number, *of_owner, slots, running, able, started_at, leased in self._rows(_WORKERS):
            owner = Owner(*of_owner)
            if is_held(owner, alive, leased=bool(leased)):
                capabilities = tuple(json.loads(able))
                workers.append(
                    port.WorkerRow(number, owner, slots, running, capabilities, started_at)
                )
        return workers

    def cancels(self, owner: Owner) -> list[tuple[str, str]]:
        """Returns (run, reason) for each run of an owner that a user asked to cancel."""
        return [(run, why) for run, why in self._rows(_CANCELS, owner.id)]

    def leave(self, owner: Owner) -> None:
        """Releases the runs of an owner that ends, and removes the owner."""

        def work(session: commits.StoreSession) -> None:
            for statement in _LEAVE:
                session.run(statement, [owner.id])

        self.perform(StoreAccess.LEASE, work)

    def owner(self, identity: str, alive: Alive) -> Owner | None:
        """Returns a process that drives runs; None if it has ended."""
        return self.perform(StoreAccess.READ, partial(living_owner, identity, alive))

    def ask_cancel(self, run: RunId, why: str) -> None:
        """Asks the run's owner to cancel it."""
        self._run(_ASK_CANCEL, run, commits.replace_refused(why))

    def _locked(
        self, run: RunId, session: commits.StoreSession
    ) -> tuple[RunRow, port.DispatchToken]:
        """Returns a run that nobody else changes now, and for which attempt it was last taken."""
        for dispatch, attempt, *values in session.rows(_LOCK_RUN, [run]):
            return run_row(values), port.DispatchToken(dispatch, attempt)
        raise self.lacks_data()

    # Requests to humans

    def items(
        self, run: str | None = None, *, state: Sequence[ItemState] = (ItemState.OPEN,)
    ) -> list[InboxItem]:
        """Returns requests to humans, oldest first."""
        values: list[object] = []
        where = f"state IN ({_places(values, map(str, state))})"
        if {*state} <= {ItemState.OPEN, ItemState.ANSWERED}:
            # SQLite uses a partial index only if the query repeats its condition literally.
            where += " AND state IN ('open', 'answered')"
        if run is not None:
            name = _places(values, [run])
            where += f" AND run = (SELECT id FROM {{s}}.runs WHERE runs.name = {name})"
        return list(map(_inbox_item, self._rows(f"{_ITEMS}{where} ORDER BY id", *values)))

    def waiting(self) -> list[port.InboxLine]:
        """Returns what a list shows of every open request, oldest first."""
        rows = self._rows(_WAITING)
        # Thousands of requests may be open, so each kind is looked up once.
        kinds = {kind: _parse_enum(RequestKind, kind) for kind in {row[3] for row in rows}}
        return [port.InboxLine._make((*row[:3], kinds[row[3]], *row[4:])) for row in rows]

    def item(self, number: int) -> InboxItem:
        """Returns one request; raises `UnknownName`."""
        return self.perform(StoreAccess.READ, partial(self._item, number))

    def _item(self, number: int, session: commits.StoreSession) -> InboxItem:
        # A number that no database could hold becomes 0, which no request has.
        known = number if 0 < number < commits.INTEGER_LIMIT else 0
        for values in session.rows(f"{_ITEMS}id = $1", [known]):
            return _inbox_item(values)
        names = [f"#{each}" for (each,) in session.rows(_OPEN_NUMBERS)]
        raise errors.UnknownName("request", f"#{number}", names)

    def answer(self, number: int, answer: str, by: str, at: float, digest: str) -> InboxItem:
        """Stores the answer to an open request; raises `InvalidAnswer` or `StaleApproval`."""
        values = (answer, commits.replace_refused(by), at)

        def work(session: commits.StoreSession) -> InboxItem:
            item = self._item(number, session)
            session.rows(_LOCK_RUN_OF, [item.id])
            item = self._item(number, session)
            # When a connection was lost after the answer was stored, it is our own that is found.
            if (item.answer, item.answered_by, item.answered_at) == values:
                return item
            _refuse_answer(item, digest)
            session.run(_ANSWER, [item.id, *values])
            return self._item(number, session)

        return self.perform(StoreAccess.WRITE, work)

    # Spend

    def ledger(self, run: RunId) -> list[LedgerEntry]:
        """Returns what a run's calls cost, by step and agent."""
        return list(map(LedgerEntry._make, self._rows(_LEDGER, run)))

    def ledger_totals(self, since: float) -> list[port.LedgerTotal]:
        """Returns what the runs updated since a time cost, by workflow, agent and model."""
        return list(map(port.LedgerTotal._make, self._rows(_LEDGER_TOTALS, since)))

    def summaries(self, version: int) -> dict[RunId, str]:
        """Returns the summaries of runs that have not changed since."""
        return {RunId(run): summary for run, summary in self._rows(_SUMMARIES, version)}

    def keep_summaries(self, version: int, summaries: Iterable[tuple[RunId, int, str]]) -> None:
        """Stores summaries, each with the commit up to which it was computed."""
        rows = [(run, head, version, summary) for run, head, summary in summaries]
        self.perform(StoreAccess.OPTIONAL, lambda session: session.run_many(_PUT_SUMMARY, rows))

    def keep_late(self, run: RunId, effect: str, attempt: int, outcome: str) -> None:
        """Stores a reply that a runner received after it lost its run."""
        self._run(_KEEP_LATE, run, effect, attempt, outcome)

    def late(self, run: RunId) -> dict[tuple[str, int], str]:
        """Returns the late replies of a run, by effect and attempt."""
        return {(effect, n): outcome for effect, n, outcome in self._rows(_LATE, run)}

    # Upkeep

    def delete(self, run: RunId, alive: Alive) -> None:
        """Deletes a run and what only it used; raises `RunBusy` if a process drives it."""

        def work(session: commits.StoreSession) -> None:
            row, _ = self._locked(run, session)
            _refuse_if_alive(row, alive, session)
            self.delete_run(session, run)

        self.perform(StoreAccess.WRITE, work)

    # Runs that leave for another store, or arrive from one

    def stage(self, name: str, document: str) -> None:
        """Stores the document of a run that arrives."""
        self._run(_STAGE, name, document)

    def staged(self, name: str) -> str | None:
        """Returns the document of a run that was staged and not admitted yet."""
        return next((str(each) for (each,) in self._rows(_STAGED, name)), None)

    def admit(self, name: str) -> None:
        """Makes the staged document a run."""

        def work(session: commits.StoreSession) -> None:
            found = session.rows(_STAGED + "{lock}", [name])
            if not found:
                raise errors.UnknownName("staged run", name)
            self._insert(parse_copy(found[0][0]), session)
            for statement in _ARRIVED:
                session.run(statement, [name])

        self.perform(StoreAccess.WRITE, work)

    def _insert(self, copy: RunCopy, session: commits.StoreSession) -> None:
        row, description = copy.row, text_digest(copy.description)
        needs = None if row.needs is None else json.dumps(row.needs)
        values = [*row[1:5], bytes.fromhex(description), *row[5:14], needs]
        if not session.run(f"{_ADMIT_RUN} ON CONFLICT (name) DO NOTHING", values):
            raise errors.NameTaken(
                f"run {row.name!r} already exists in this store; delete it first"
            )
        run = run_row(session.rows(_RUN_BY_NAME, [row.name])[0]).id
        texts = {description: copy.description, **copy.blobs}
        self.put_texts(session, [(run, *each) for each in texts.items()])
        late = [(*key, outcome) for key, outcome in copy.late.items()]
        contents: dict[str, Sequence[commits.Row]] = {
            self.add_commit: copy.journal,
            _ADMIT_ITEM: [item[1:] for item in copy.items],
            commits.PUT_LEDGER: copy.ledger,
            _KEEP_LATE: late,
        }
        for statement, rows in contents.items():
            session.run_many(statement, [(run, *each) for each in rows])

    def retire(
        self, run: RunId, fence: int, requests: Sequence[tuple[int, str]], target: str
    ) -> bool:
        """Deletes a run that is staged elsewhere, and remembers where it went."""

        def work(session: commits.StoreSession) -> bool:
            # An answer locks the run's row too, so none can arrive after the requests were read.
            found = session.rows(_NAME_AT_FENCE, [run, fence])
            if not found or session.rows(_REQUEST_STATES, [run]) != [*requests]:
                return False
            self.delete_run(session, run)
            session.run(_REMEMBER_MOVE, [found[0][0], target])
            return True

        return self.perform(StoreAccess.WRITE, work)


def _places(values: list[object], more: Iterable[object]) -> str:
    """Adds values to those of a statement, and returns their places in it."""
    start = len(values) + 1
    values.extend(more)
    return ", ".join(f"${number}" for number in range(start, len(values) + 1))


# Owners, and who has to be believed alive.


def is_held(owner: Owner, alive: Alive, *, leased: bool) -> bool:
    """Tells whether an owner has to be believed alive; `leased` is whether its lease holds.

    A process that exists and has not renewed its lease is stopped, swapped out or cut off. It may
    stay so for hours, and the fence keeps it from writing when it continues.
    """
    return leased and alive(owner) is not False


def living_owner(
    identity: str | None, alive: Alive, session: commits.StoreSession, *, is_later: bool = False
) -> Owner | None:
    """Returns an owner that has to be believed alive; None if it is dead or unknown.

    `is_later` is whether a later attempt of a dispatcher wants its run.
    """
    left = RENEWED_SECONDS if is_later else 0.0
    for *values, leased in session.rows(_OWNER, [identity, left]) if identity is not None else ():
        owner = Owner(*values)
        return owner if is_held(owner, alive, leased=bool(leased)) else None
    return None


def put_owner(
    owner: Owner, session: commits.StoreSession, lease_seconds: float = port.LEASE_SECONDS
) -> None:
    """Renews all leases of an owner."""
    session.run(_PUT_OWNER, [owner.id, owner.host, owner.pid, owner.born, lease_seconds])


def _refuse_if_alive(
    row: RunRow, alive: Alive, session: commits.StoreSession, *, is_later: bool = False
) -> None:
    """Raises `RunBusy` if a run's owner has to be believed alive."""
    owner = living_owner(row.owner, alive, session, is_later=is_later)
    if owner is not None:
        raise errors.RunBusy(
            f"run {row.name!r} is being driven by process {owner.pid} on {owner.host_name}",
            remedy=CancelRun(row.name),
        )


def _is_later_attempt(
    row: RunRow, token: port.DispatchToken | None, last: port.DispatchToken
) -> bool:
    """Tells whether an attempt of a dispatcher follows the run's last; an outdated one raises.

    `last` is the token that the run was last taken for.
    """
    if token is None or row.owner is None or token.dispatch != last.dispatch:
        return False
    if token.attempt <= last.attempt:
        raise errors.RunBusy(f"a later attempt drives run {row.name!r} already")
    return True


def _refuse_answer(item: InboxItem, digest: str) -> None:
    """Raises `RequestClosed` or `StaleApproval` unless a request can be answered as shown."""
    if item.state != ItemState.OPEN:
        raise errors.RequestClosed(f"request #{item.id} is no longer open ({item.state})")
    if item.digest != digest:
        raise errors.StaleApproval(
            f"request #{item.id} has changed since it was shown", remedy=ShowInbox(item.id)
        )


# Rows as values, and values as they can be stored.


def run_row(values: Iterable[Any]) -> RunRow:
    """Returns a run, from its columns."""
    row = RunRow._make(values)
    # A list of names is stored as JSON.
    needs = None if row.needs is None else tuple(json.loads(str(row.needs)))
    return row._replace(status=_parse_enum(Status, row.status), needs=needs)


def _inbox_item(values: Iterable[Any]) -> InboxItem:
    item = InboxItem._make(values)
    return item._replace(
        kind=_parse_enum(RequestKind, item.kind), state=_parse_enum(ItemState, item.state)
    )


@cache
def _parse_enum(enum: type[E], value: str) -> E:
    try:
        return enum(value)
    except ValueError:
        raise errors.StoreTooNew(
            f"the database contains {value!r}, which this version does not know; upgrade signoff, "
            "or restore a backup"
        ) from None
