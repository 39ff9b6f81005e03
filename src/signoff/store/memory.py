"""A store that lives and dies with its process, for tests and throw-away runs.

It keeps every promise the durable ones keep except the one its name denies.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from signoff.core.outcome import Status
from signoff.core.spend import LedgerEntry
from signoff.errors import (
    InvalidAnswer,
    RunBusy,
    StaleApproval,
    StoreDamaged,
    UnknownName,
)
from signoff.runtime.store_port import (
    LEASE_SECONDS,
    Alive,
    Commit,
    CommitResult,
    InboxItem,
    InboxLine,
    JournalRow,
    NewItem,
    NewRun,
    Owner,
    RunId,
    RunRow,
    StoredRun,
)

_LIVE = ("open", "answered")


@dataclass
class _Run:
    row: RunRow
    description: str
    journal: list[JournalRow] = field(default_factory=list)
    checkpoint: tuple[int, str | None] = (0, None)
    ledger: dict[tuple[str, str, str], LedgerEntry] = field(default_factory=dict)
    late: dict[tuple[str, int], str] = field(default_factory=dict)


class MemoryStore:
    """Runs in dictionaries."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._runs: dict[RunId, _Run] = {}
        self._names: dict[str, RunId] = {}
        self._blobs: dict[str, str] = {}
        self._items: dict[int, InboxItem] = {}
        self._owners: dict[str, tuple[Owner, float]] = {}
        self._numbers = itertools.count(1)

    def reopen(self) -> MemoryStore:
        """Returns itself: there is nothing else to open."""
        return self

    def load(self, name: str) -> StoredRun:
        """Returns what a runner needs; raises `UnknownName`."""
        with self._lock:
            run = self._named(name)
            seq, state = run.checkpoint
            return StoredRun(run.row, state, seq, run.journal[seq:])

    def row(self, name: str) -> RunRow:
        """Returns one run; raises `UnknownName`."""
        with self._lock:
            return self._named(name).row

    def rows(
        self, *, status: Sequence[Status] = (), due_before: float | None = None, limit: int = -1
    ) -> list[RunRow]:
        """Returns runs, newest first."""
        with self._lock:
            found = [
                run.row
                for run in reversed(self._runs.values())
                if (not status or run.row.status in status)
                and (due_before is None or _due(run.row, due_before))
            ]
        return found if limit < 0 else found[:limit]

    def journal(self, run: RunId, after: int = 0) -> list[JournalRow]:
        """Returns a run's commits, oldest first."""
        with self._lock:
            return self._runs[run].journal[after:]

    def description(self, run: RunId) -> str:
        """Returns the definition the run was started with, as JSON."""
        with self._lock:
            return self._runs[run].description

    def blob(self, digest: str) -> str:
        """Returns a text kept apart."""
        with self._lock:
            if digest not in self._blobs:
                raise StoreDamaged(f"there is no text with the digest {digest}")
            return self._blobs[digest]

    def adopt(self, run: RunId, definition: str, description: str) -> None:
        """Replaces a run's frozen definition."""
        with self._lock:
            self._runs[run].description = description
            self._replace(run, definition=definition)

    def commit(self, commits: Sequence[Commit], *, wait: bool = True) -> list[CommitResult]:  # noqa: ARG002  # never locked
        """Applies the commits of several runs at once, each all or nothing."""
        with self._lock:
            return [self._apply(commit) for commit in commits]

    def _apply(self, c: Commit) -> CommitResult:
        number = c.run if c.new is None else self._created(c.new)
        if number is None:
            return CommitResult(accepted=False)
        run = self._runs[number]
        if (run.row.head, run.row.fence) != (c.head, c.fence):
            return CommitResult(accepted=False)
        if any(self._items[item].state != "answered" for item in c.used):
            raise StoreDamaged("an answer was used before")
        self._replace(
            number,
            head=c.head + 1,
            status=c.status,
            step=c.step,
            iteration=c.iteration,
            reason=c.reason,
            due_at=c.due_at,
            updated_at=c.at,
        )
        self._blobs.update(c.blobs)
        run.journal.append(JournalRow(c.head + 1, c.events))
        if c.checkpoint is not None:
            run.checkpoint = (c.head + 1, c.checkpoint)
        run.ledger.update((entry[:3], entry) for entry in c.ledger)
        self._turn_items(run.row, c)
        wake = c.release and not self._released(run.row, c.status)
        return CommitResult(accepted=True, wake=wake, run=number)

    def _created(self, new: NewRun) -> RunId | None:
        if new.name in self._names:
            return None
        number = RunId(len(self._runs) + 1)
        row = RunRow(
            id=number,
            name=new.name,
            workflow=new.workflow,
            target=new.target,
            definition=new.definition,
            status=Status.RUNNING,
            step=None,
            iteration=1,
            reason="",
            due_at=None,
            created_at=new.created_at,
            updated_at=new.created_at,
            head=0,
            fence=1,
            owner=new.owner,
            cancel=None,
        )
        self._runs[number] = _Run(row, new.description)
        self._names[new.name] = number
        return number

    def _released(self, row: RunRow, status: Status) -> bool:
        if status is Status.WAITING and self._of(row.name, ("answered",)):
            self._replace(row.id, status=Status.RUNNING, due_at=None)
            return False
        self._replace(row.id, owner=None)
        return True

    def _turn_items(self, row: RunRow, c: Commit) -> None:
        if c.withdraw:
            for item in self._of(row.name, _LIVE):
                self._items[item.id] = item._replace(state="withdrawn")
        for number in c.withdrawn:
            if self._items[number].state == "open":
                self._items[number] = self._items[number]._replace(state="withdrawn")
        for new in c.opened:
            number = next(self._numbers)
            self._items[number] = _opened(number, row.name, new)
        for number in c.used:
            self._items[number] = self._items[number]._replace(state="used")

    def take(self, run: RunId, owner: Owner, now: float, alive: Alive) -> int:
        """Gives the run to an owner and returns the new fence."""
        with self._lock:
            row = self._runs[run].row
            holder = self._owners.get(row.owner or "")
            if row.owner != owner.id and holder is not None:
                other, until = holder
                lives = alive(other)
                if until > now if lives is None else lives:
                    raise RunBusy(
                        f"run {row.name!r} is being driven by process {other.pid} on "
                        f"{other.host.split('/')[0]}; wait for it, or stop it: "
                        f"signoff cancel {row.name}"
                    )
            self._owners[owner.id] = (owner, now + LEASE_SECONDS)
            self._replace(run, owner=owner.id, fence=row.fence + 1, cancel=None)
            return row.fence + 1

    def beat(self, owner: Owner, until: float) -> None:
        """Renews all of an owner's leases at once."""
        with self._lock:
            self._owners[owner.id] = (owner, until)

    def cancels(self, owner: Owner) -> list[tuple[str, str]]:
        """Returns (run, why) for each run of an owner that somebody asked to cancel."""
        with self._lock:
            rows = [run.row for run in self._runs.values() if run.row.owner == owner.id]
            return [(row.name, row.cancel) for row in rows if row.cancel is not None]

    def leave(self, owner: Owner) -> None:
        """Forgets an owner that ends."""
        with self._lock:
            self._owners.pop(owner.id, None)
            for number, run in self._runs.items():
                if run.row.owner == owner.id:
                    self._replace(number, owner=None)

    def owner(self, identity: str) -> Owner | None:
        """Returns a process that drives runs, or did and could not say that it ended."""
        with self._lock:
            found = self._owners.get(identity)
        return found[0] if found is not None else None

    def ask_cancel(self, run: RunId, why: str) -> None:
        """Asks whoever drives the run to cancel it."""
        with self._lock:
            self._replace(run, cancel=why)

    def items(self, run: str | None = None, *, state: Sequence[str] = ("open",)) -> list[InboxItem]:
        """Returns requests to people, oldest first."""
        with self._lock:
            return self._of(run, state)

    def waiting(self) -> list[InboxLine]:
        """Returns every open request as a list shows it, oldest first."""
        with self._lock:
            return [_line(item) for item in self._of(None, ("open",))]

    def item(self, number: int) -> InboxItem:
        """Returns one request; raises `UnknownName`."""
        with self._lock:
            if number not in self._items:
                live = [f"#{item.id}" for item in self._of(None, ("open",))]
                raise UnknownName("request", f"#{number}", live)
            return self._items[number]

    def answer(self, number: int, answer: str, by: str, at: float, digest: str) -> InboxItem:
        """Stores an answer, once."""
        with self._lock:
            item = self.item(number)
            if item.state != "open":
                raise InvalidAnswer(f"request #{number} is no longer open ({item.state})")
            if item.digest != digest:
                raise StaleApproval(f"request #{number} shows something else by now")
            self._items[number] = item._replace(
                state="answered", answer=answer, answered_by=by, answered_at=at
            )
            return self._items[number]

    def ledger(self, run: RunId) -> list[LedgerEntry]:
        """Returns what a run's calls cost, by step and agent."""
        with self._lock:
            return [entry for _, entry in sorted(self._runs[run].ledger.items())]

    def keep_late(self, run: RunId, effect: str, attempt: int, outcome: str) -> None:
        """Keeps a reply that a fenced runner could no longer record."""
        with self._lock:
            self._runs[run].late[effect, attempt] = outcome

    def late(self, run: RunId) -> dict[tuple[str, int], str]:
        """Returns such replies, by effect and attempt."""
        with self._lock:
            return dict(self._runs[run].late)

    def close(self) -> None:
        """Does nothing: the runs stay for as long as somebody holds the store."""

    def _named(self, name: str) -> _Run:
        if name not in self._names:
            raise UnknownName("run", name, list(reversed(self._names)))
        return self._runs[self._names[name]]

    def _replace(self, run: RunId, **changes: object) -> None:
        stored = self._runs[run]
        stored.row = stored.row._replace(**changes)  # type: ignore[arg-type]  # names are checked by the tuple

    def _of(self, run: str | None, state: Sequence[str]) -> list[InboxItem]:
        return [
            item
            for item in self._items.values()
            if item.state in state and (run is None or item.run == run)
        ]


def _line(item: InboxItem) -> InboxLine:
    return InboxLine(*(getattr(item, name) for name in InboxLine._fields))


def _due(row: RunRow, before: float) -> bool:
    return row.due_at is not None and row.due_at <= before


def _opened(number: int, run: str, new: NewItem) -> InboxItem:
    return InboxItem(
        id=number,
        run=run,
        **new._asdict(),
        state="open",
        answer=None,
        answered_by=None,
        answered_at=None,
    )
