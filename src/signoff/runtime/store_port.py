"""The port to a store: what the runtime stores, and which operations it needs.

A store implements `Store` and has to pass the suite of `tests/store_suite`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, NewType, Protocol

from signoff.core import events as ev
from signoff.core.codec import decode
from signoff.core.fold import fold, state_from_json
from signoff.core.outcome import Status
from signoff.core.requests import ItemState, RequestKind
from signoff.core.run_state import RunState
from signoff.core.spend import LedgerEntry

# What a store returns: runs, commits, requests, and the processes that drive runs.


RunId = NewType("RunId", int)
"""A run's number in its store; users see its name."""


class RunRow(NamedTuple):
    """A run as the store lists it."""

    id: RunId
    name: str
    workflow: str
    target: str
    """How to find the workflow again: `module:NAME`, a file, or empty."""
    definition: str
    status: Status
    step: str | None
    iteration: int
    reason: str
    due_at: float | None
    created_at: float
    updated_at: float
    head: int
    """How many commits its journal holds."""
    fence: int
    owner: str | None
    """The process driving it, if any."""
    cancel: str | None
    """Why the user requested to cancel it; None if no one did."""
    needs: tuple[str, ...] | None = None
    """What a worker must be able to do to drive it; None if it was never handed to workers."""


class JournalRow(NamedTuple):
    """One commit of a run's journal."""

    seq: int
    events: str


Position = tuple[RunId, int]
"""A commit: a run, and the number of the commit in its journal."""


class News(NamedTuple):
    """What was committed since a position."""

    last: Position | None
    """The newest commit; None if there is none at all."""
    rows: list[RunRow]
    """The runs that have committed since, as they are now."""
    complete: bool
    """False if that is not known, because the commit at the position was deleted."""
    others: str
    """Differs when runs or requests have changed without a commit in a journal: by an answer, a
    hand-over, a deletion."""


class StoredRun(NamedTuple):
    """What a runner needs to continue a run."""

    row: RunRow
    checkpoint: str | None
    """The folded state as of `checkpoint_seq`, if one was stored."""
    checkpoint_seq: int
    tail: list[JournalRow]
    """Everything committed since."""


class LedgerTotal(NamedTuple):
    """What one agent and model cost all runs of a workflow."""

    workflow: str
    agent: str
    model: str
    runs: int
    calls: int
    tokens_in: int
    tokens_out: int
    usd: float
    unknown_tokens: int
    """How many calls did not report it; the same for the next and the last."""
    unknown_usd: int
    tokens_cached: int
    unknown_cached: int


class InboxItem(NamedTuple):
    """A request to a human."""

    id: int
    run: str
    effect: str
    kind: RequestKind
    prompt: str
    form: str
    """The whole request, as JSON."""
    digest: str
    """Of the request as it was shown; an answer is bound to it."""
    step: str
    opened_at: float
    deadline: float | None
    state: ItemState
    answer: str | None
    """`{"value": ..., "text": ...}` as JSON, once answered."""
    answered_by: str | None
    answered_at: float | None


class InboxLine(NamedTuple):
    """A request to a human, as a list shows it."""

    id: int
    run: str
    step: str
    kind: RequestKind
    prompt: str
    opened_at: float
    deadline: float | None


class NewItem(NamedTuple):
    """A request to a human, about to be opened."""

    effect: str
    kind: RequestKind
    prompt: str
    form: str
    digest: str
    step: str
    opened_at: float
    deadline: float | None


@dataclass(frozen=True, slots=True)
class Owner:
    """A process that drives runs."""

    id: str
    """Unique per process start."""
    host: str
    pid: int
    born: str
    """Tells this process from a later one with the same number."""

    @property
    def host_name(self) -> str:
        """The host without what tells its containers and restarts apart."""
        return self.host.split("/")[0]


class DispatchToken(NamedTuple):
    """Says which attempt of a dispatcher an owner takes a run for."""

    dispatch: str
    """The dispatcher's own name for all attempts to drive the run."""
    attempt: int
    """Grows with each attempt."""


class WorkerRow(NamedTuple):
    """A worker: a process that claims runs and drives them."""

    number: int
    """Grows with each worker that is registered."""
    owner: Owner
    slots: int
    """How many runs it drives at once."""
    running: int
    """How many runs it drives now."""
    capabilities: tuple[str, ...]
    started_at: float


Alive = Callable[[Owner], bool | None]
"""Tells whether an owner still runs; None when that cannot be seen from here."""


# The port for notifications of a store, so that processes need not poll it.


class Topic(StrEnum):
    """What a message of a store is about. It means "look again" and carries no data."""

    WORK = "work"
    """A run was handed over, answered or given back: a worker may be able to continue it."""
    CANCEL = "cancel"
    """A run is to be cancelled."""
    RUNS = "runs"
    """A run was created, came to rest, or opened a request."""


class StoreListener(Protocol):
    """Hears what other processes do to a store.

    A message can be lost, so subscribers still poll now and then. Commits in the middle of a run
    send none.
    """

    @property
    def is_live(self) -> bool:
        """Whether messages arrive now; otherwise the store has to be asked."""

    def subscribe(
        self, topics: Collection[Topic], hear: Callable[[], object]
    ) -> Callable[[], None]:
        """Calls `hear`, in another thread, for each message about a topic; returns what ends that.

        It is also called once messages arrive, and when they no longer do: what happened before
        may have been missed.
        """


@contextmanager
def subscribed(
    listener: StoreListener | None, topics: Collection[Topic], hear: Callable[[], object]
) -> Iterator[Callable[[], bool]]:
    """Lets a store's listener call `hear` inside; gives what tells whether messages arrive."""
    if listener is None:
        yield lambda: False
        return
    unsubscribe = listener.subscribe(topics, hear)
    try:
        yield lambda: listener.is_live
    finally:
        unsubscribe()


LEASE_SECONDS = 10.0
"""How long an owner on another host is believed alive after its last heartbeat."""

SILENT_SECONDS = 3.0
"""How long without a heartbeat until a later attempt of a dispatcher takes a run; beats take 2."""

FORGOTTEN_SECONDS = 3600.0
"""How long after its lease ended an owner without runs is removed: a killed one never leaves."""


@dataclass(slots=True)
class NewRun:
    """A run about to be created."""

    name: str
    workflow: str
    target: str
    definition: str
    description: str
    """The frozen definition, as JSON."""
    created_at: float
    owner: str
    """The process that drives it first, with fence 1."""
    needs: tuple[str, ...] | None = None
    """What a worker must be able to do to drive it; None if it is not handed to workers."""


@dataclass(slots=True)
class Commit:
    """Everything one run changes in one transaction."""

    run: RunId
    """Not yet known (0) when the commit creates the run."""
    fence: int
    head: int
    """The head this commit builds on; another one means that another process has written."""
    events: str
    """A JSON list."""
    status: Status
    step: str | None
    iteration: int
    reason: str
    due_at: float | None
    at: float
    blobs: Mapping[str, str] = field(default_factory=dict)
    opened: Sequence[NewItem] = ()
    used: Sequence[int] = ()
    """Inbox items whose answers this commit consumes."""
    withdraw: bool = False
    """Whether requests that are still open have become pointless."""
    withdrawn: Sequence[int] = ()
    """Single open requests that have become pointless."""
    ledger: Sequence[LedgerEntry] = ()
    """What calls have cost so far; replaces the stored ledger when a run stops."""
    checkpoint: str | None = None
    release: bool = False
    """Whether the runner gives up the run."""
    new: NewRun | None = None
    """Set in a run's first commit, which creates it with head 0 and fence 1."""


class CommitResult(NamedTuple):
    """What became of a commit."""

    accepted: bool
    wake: bool = False
    """The run was about to wait, but an answer had arrived: it was not released."""
    run: RunId | None = None
    """The number of a run this commit created."""


class StoreHealth(NamedTuple):
    """What a check of a store found."""

    location: str
    """Where it is, without a password."""
    schema: int
    """The number of the last migration that was applied."""
    size: int
    """In bytes."""
    clock_ahead: float = 0.0
    """Seconds that its clock is ahead of this machine's."""
    problem: str = ""
    """What is damaged; empty if nothing is."""


class Store(Protocol):
    """Where runs live. Small, synchronous and transactional: each call is one transaction.

    A store may be called from any thread; calls on one instance take turns.
    """

    def reopen(self) -> Store:
        """Opens the same store again, for a thread that must not wait for its turn."""

    def local_file(self) -> Path | None:
        """Returns the file of a store that only this machine has; None if there is none."""

    def commit(self, commits: Sequence[Commit], *, wait: bool = True) -> list[CommitResult]:
        """Applies the commits of several runs in one transaction, each all or nothing.

        With `wait=False`, a store that another process has locked raises `StoreBusy` at once.

        A commit whose fence or head is not the stored one is refused, and so is one that
        creates a run whose name is taken; the others are applied.
        A commit that releases the run with status waiting re-checks the inbox in the same
        transaction: if there is an unused answer, the run is not released and `wake` is set.
        """

    def load(self, name: str) -> StoredRun:
        """Returns what a runner needs; raises `UnknownName`."""

    def row(self, name: str) -> RunRow:
        """Returns one run; raises `UnknownName`."""

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
        """Returns runs, newest first; `before` continues after the last one of a page.

        `text` is a part of the name, the workflow or the reason; case does not matter.
        """

    def journal(self, run: RunId, after: int = 0) -> list[JournalRow]:
        """Returns a run's commits, oldest first."""

    def changes(self) -> int:
        """Returns a number that differs once this or another process has written.

        It is cheap: a process that waits for news asks several times a second.
        """

    def listener(self) -> StoreListener | None:
        """Returns what hears of other processes' work at once; None if the store tells nothing."""

    def news(self, after: Position | None) -> News:
        """Returns what was committed after a position; with None, only how far everything is."""

    def description(self, run: RunId) -> str:
        """Returns the definition the run was started with, as JSON."""

    def blob(self, digest: str) -> str:
        """Returns a text that is stored separately; raises `StoreDamaged` if it is missing."""

    def take(
        self,
        run: RunId,
        owner: Owner,
        alive: Alive,
        *,
        lease_seconds: float = LEASE_SECONDS,
        token: DispatchToken | None = None,
    ) -> int:
        """Gives the run to an owner, renews its leases for that long, and returns the new fence.

        Raises `RunBusy` when another owner has it whose lease has not ended by the store's clock,
        unless `alive` reports that its process is gone. A later attempt of the dispatch that the
        run was last taken for takes it from an owner that has not renewed its lease for
        `SILENT_SECONDS`: the dispatcher does not hear from it either, and the fence keeps it from
        writing. An earlier attempt is refused.
        """

    def beat(self, owner: Owner, lease_seconds: float = LEASE_SECONDS) -> None:
        """Renews all of an owner's leases at once; they end by the store's clock."""

    def enqueue(self, run: RunId, needs: Sequence[str], alive: Alive) -> bool:
        """Hands a run to workers: a worker that can do all of `needs` may claim it from now on.

        Its journal does not change. False if it has ended, or if a process drives it (`alive` is
        that of `take`), which will see any answer by itself.
        """

    def claim(
        self, owner: Owner, capabilities: Iterable[str], alive: Alive, limit: int
    ) -> list[RunRow]:
        """Gives runs that were handed over and can continue to a worker, the oldest first.

        Can continue: queued; waiting with an answer that was not used; parked or waiting, and
        due; or its last owner is dead. `alive` is that of `take`. No two owners ever claim the
        same run. A claimed run keeps its status until its owner takes it, and its fence. Times are
        those of the store's clock.
        """

    def register(self, owner: Owner, slots: int, capabilities: Iterable[str]) -> int:
        """Lists an owner as a worker until it leaves, and renews its leases; returns its number.

        Called again, it changes what the worker can do, and its number stays. Owners that have no
        run, and whose lease ended `FORGOTTEN_SECONDS` ago, are removed: they died, or sleep.
        """

    def workers(self, alive: Alive) -> list[WorkerRow]:
        """Returns the workers that have not left, the oldest first; `alive` is that of `take`."""

    def cancels(self, owner: Owner) -> list[tuple[str, str]]:
        """Returns (run, why) for each run of an owner that the user asked to cancel."""

    def leave(self, owner: Owner) -> None:
        """Removes an owner that ends."""

    def owner(self, identity: str, alive: Alive) -> Owner | None:
        """Returns a process that drives runs; None if it has ended. `alive` is that of `take`."""

    def ask_cancel(self, run: RunId, why: str) -> None:
        """Requests the process that drives the run to cancel it."""

    def adopt(self, run: RunId, definition: str, description: str) -> None:
        """Replaces a run's frozen definition."""

    def items(
        self, run: str | None = None, *, state: Sequence[ItemState] = (ItemState.OPEN,)
    ) -> list[InboxItem]:
        """Returns requests to humans, oldest first."""

    def waiting(self) -> list[InboxLine]:
        """Returns every open request as a list shows it, oldest first, however many there are."""

    def item(self, number: int) -> InboxItem:
        """Returns one request; raises `UnknownName`."""

    def answer(self, number: int, answer: str, by: str, at: float, digest: str) -> InboxItem:
        """Stores an answer, once.

        Raises `InvalidAnswer` if the request is no longer open, and `StaleApproval` if
        `digest` is not the request's.
        """

    def ledger(self, run: RunId) -> list[LedgerEntry]:
        """Returns what a run's calls had cost when it last came to rest, by step and agent."""

    def ledger_totals(self, since: float) -> list[LedgerTotal]:
        """Returns what runs that were updated since a time had cost when they last came to rest.

        The most expensive first.
        """

    def summaries(self, version: int) -> dict[RunId, str]:
        """Returns what `keep_summaries` stored for the runs whose journal has not grown since."""

    def keep_summaries(self, version: int, summaries: Iterable[tuple[RunId, int, str]]) -> None:
        """Stores a summary of each run, computed up to a commit of its journal (its `head`).

        Summaries can be computed again, so this waits for no one: a store that another process
        has locked raises `StoreBusy`.
        """

    def keep_late(self, run: RunId, effect: str, attempt: int, outcome: str) -> None:
        """Stores a reply that a runner could not record because it had lost the run."""

    def late(self, run: RunId) -> dict[tuple[str, int], str]:
        """Returns such replies, by effect and attempt."""

    def delete(self, run: RunId, alive: Alive) -> None:
        """Deletes a run and the texts that only it used; raises `RunBusy` if a process drives it.

        `alive` is that of `take`.
        """

    def backup(self, target: Path) -> int:
        """Copies all runs to a new file, checked, while others use them; returns their number."""

    # A run that is moved to another store: staged there, retired here, and admitted there.

    def stage(self, name: str, document: str) -> None:
        """Stores the document of a run that arrives; it replaces an earlier one of that name."""

    def staged(self, name: str) -> str | None:
        """Returns the document of a run that was staged and not admitted yet."""

    def admit(self, name: str) -> None:
        """Makes the staged document a run; raises `NameTaken` if there is another of this name."""

    def retire(
        self, run: RunId, fence: int, requests: Sequence[tuple[int, str]], target: str
    ) -> bool:
        """Deletes a run that was taken with this fence, and remembers where it went.

        False if the fence or the states of its requests are not these any more: someone has
        answered since the run was read. Who asks for the run gets `RunMoved` from now on.
        """

    def health(self) -> StoreHealth:
        """Checks the store, which may take a while."""

    def close(self) -> None:
        """Closes the database."""


@dataclass(frozen=True)
class StoreKind:
    """A kind of store, registered under the scheme of its URLs."""

    open: Callable[[str], Store]
    """Opens the store at a URL."""
    set_up: Callable[[str], int] | None = None
    """Creates or upgrades the tables at a URL, and returns the number of their schema; None if
    opening does all of that."""
    setup_sql: Callable[[str, str], str] | None = None
    """Returns the SQL with which an administrator does the same for a role; without one, for the
    user of the URL. None if there is none."""


# How its rows are read.


def folded_state(stored: StoredRun, blob: Callable[[str], str]) -> RunState:
    """Returns a run's state: its last checkpoint and the events after it, folded."""
    start = None
    if stored.checkpoint is not None:
        start = state_from_json(decode(stored.checkpoint, blob))
    return fold(events_in(stored.tail, blob), start)


def events_in(rows: Iterable[tuple[int, str]], blob: Callable[[str], str]) -> Iterator[ev.Event]:
    """Returns the events of stored commits, oldest first."""
    return (event for _, event in numbered_events(rows, blob))


def numbered_events(
    rows: Iterable[tuple[int, str]], blob: Callable[[str], str]
) -> Iterator[tuple[int, ev.Event]]:
    """Yields the events of stored commits, each with the number of its commit."""
    for number, events in rows:
        for data in decode(events, blob):
            yield number, ev.from_json(data)
