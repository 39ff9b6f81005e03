"""What a store returns: runs, commits, requests, and the processes that drive runs.

They are part of the port; import them from `store_port`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, NewType

from signoff.core.outcome import Status
from signoff.core.requests import ItemState, RequestKind

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
