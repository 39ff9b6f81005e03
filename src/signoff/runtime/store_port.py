"""The port to a store: what the runtime stores, and which operations it needs.

A store implements `Store` and has to pass the `StoreSuite`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import NamedTuple, NewType, Protocol

from signoff.core.outcome import Status
from signoff.core.requests import ItemState, RequestKind
from signoff.core.spend import LedgerEntry
from signoff.light_dataclass import light_dataclass

LEASE_SECONDS = 30.0
"""How long an owner on another host is believed alive after its last heartbeat."""

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


class JournalRow(NamedTuple):
    """One commit of a run's journal."""

    seq: int
    events: str


class StoredRun(NamedTuple):
    """What a runner needs to continue a run."""

    row: RunRow
    checkpoint: str | None
    """The folded state as of `checkpoint_seq`, if one was stored."""
    checkpoint_seq: int
    tail: list[JournalRow]
    """Everything committed since."""


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


@light_dataclass(frozen=True, slots=True)
class Owner:
    """A process that drives runs."""

    id: str
    """Unique per process start."""
    host: str
    pid: int
    born: str
    """Tells this process from a later one with the same number."""


Alive = Callable[[Owner], bool | None]
"""Tells whether an owner still runs; None when that cannot be seen from here."""


@light_dataclass(slots=True)
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


@light_dataclass(slots=True)
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


class Store(Protocol):
    """Where runs live. Small, synchronous and transactional: each call is one transaction.

    A store may be called from any thread; calls on one instance take turns.
    """

    def reopen(self) -> Store:
        """Opens the same store again, for a thread that must not wait for its turn."""
        ...

    def commit(self, commits: Sequence[Commit], *, wait: bool = True) -> list[CommitResult]:
        """Applies the commits of several runs in one transaction, each all or nothing.

        With `wait=False`, a store that another process has locked raises `StoreBusy` at once.

        A commit whose fence or head is not the stored one is refused, and so is one that
        creates a run whose name is taken; the others are applied.
        A commit that releases the run with status waiting re-checks the inbox in the same
        transaction: if there is an unused answer, the run is not released and `wake` is set.
        """
        ...

    def load(self, name: str) -> StoredRun:
        """Returns what a runner needs; raises `UnknownName`."""
        ...

    def row(self, name: str) -> RunRow:
        """Returns one run; raises `UnknownName`."""
        ...

    def rows(
        self, *, status: Sequence[Status] = (), due_before: float | None = None, limit: int = -1
    ) -> list[RunRow]:
        """Returns runs, newest first."""
        ...

    def journal(self, run: RunId, after: int = 0) -> list[JournalRow]:
        """Returns a run's commits, oldest first."""
        ...

    def description(self, run: RunId) -> str:
        """Returns the definition the run was started with, as JSON."""
        ...

    def blob(self, digest: str) -> str:
        """Returns a text that is stored separately; raises `StoreDamaged` if it is missing."""
        ...

    def take(self, run: RunId, owner: Owner, now: float, alive: Alive) -> int:
        """Gives the run to an owner, whose leases it renews, and returns the new fence.

        Raises `RunBusy` when another owner has it that `alive` reports as running, or, if
        `alive` cannot tell, whose last heartbeat is recent.
        """
        ...

    def beat(self, owner: Owner, until: float) -> None:
        """Renews all of an owner's leases at once."""
        ...

    def cancels(self, owner: Owner) -> list[tuple[str, str]]:
        """Returns (run, why) for each run of an owner that the user asked to cancel."""
        ...

    def leave(self, owner: Owner) -> None:
        """Removes an owner that ends."""
        ...

    def owner(self, identity: str) -> Owner | None:
        """Returns a process that drives runs, or did and ended without `leave`."""
        ...

    def ask_cancel(self, run: RunId, why: str) -> None:
        """Requests the process that drives the run to cancel it."""
        ...

    def adopt(self, run: RunId, definition: str, description: str) -> None:
        """Replaces a run's frozen definition."""
        ...

    def items(
        self, run: str | None = None, *, state: Sequence[ItemState] = (ItemState.OPEN,)
    ) -> list[InboxItem]:
        """Returns requests to humans, oldest first."""
        ...

    def waiting(self) -> list[InboxLine]:
        """Returns every open request as a list shows it, oldest first, however many there are."""
        ...

    def item(self, number: int) -> InboxItem:
        """Returns one request; raises `UnknownName`."""
        ...

    def answer(self, number: int, answer: str, by: str, at: float, digest: str) -> InboxItem:
        """Stores an answer, once.

        Raises `InvalidAnswer` if the request is no longer open, and `StaleApproval` if
        `digest` is not the request's.
        """
        ...

    def ledger(self, run: RunId) -> list[LedgerEntry]:
        """Returns what a run's calls had cost when it last came to rest, by step and agent."""
        ...

    def summaries(self, version: int) -> dict[RunId, str]:
        """Returns what `keep_summaries` stored for the runs whose journal has not grown since."""
        ...

    def keep_summaries(self, version: int, summaries: Iterable[tuple[RunId, int, str]]) -> None:
        """Stores a summary of each run, computed up to a commit of its journal (its `head`).

        Summaries can be computed again, so this waits for no one: a store that another process
        has locked raises `StoreBusy`.
        """
        ...

    def keep_late(self, run: RunId, effect: str, attempt: int, outcome: str) -> None:
        """Stores a reply that a runner could not record because it had lost the run."""
        ...

    def late(self, run: RunId) -> dict[tuple[str, int], str]:
        """Returns such replies, by effect and attempt."""
        ...

    def delete(self, run: RunId, now: float, alive: Alive) -> None:
        """Deletes a run and the texts that only it used; raises `RunBusy` if a process drives it.

        `alive` is that of `take`.
        """
        ...

    def backup(self, target: Path) -> int:
        """Copies all runs to a new file, checked, while others use them; returns their number."""
        ...

    def close(self) -> None:
        """Closes the database."""
        ...
