"""One run's journal: records events, keeps the folded state, and knows what is durable.

`record` is immediate and works in memory: it applies the event to the state and queues it for
the next commit. The group writer makes it durable. Nothing a run does may reach the outside
world before `durable()` has returned: that one rule is what makes everything else safe to do
optimistically. A process that dies with events in memory has done nothing with them yet, so
the next one works from the last commit and loses nothing that was paid for.

Each commit carries the run's `head` and `fence`. The store refuses it when another process has
taken the run over since, and this journal then fails with `LeaseLost`. It also fails when the
store cannot be written. Replies that can then no longer be committed are paid for, so their
`rescue` callbacks keep them for the next process that drives the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from typing import TYPE_CHECKING

from signoff.core import events as ev
from signoff.core.codec import Blobs, decode, encode
from signoff.core.fold import evolve, fold, state_from_json, state_to_json
from signoff.core.frozen import CHECKPOINT_DEPTH
from signoff.core.run_state import RunState
from signoff.errors import BadHandlerResult, LeaseLost, NameTaken, SignoffError, StoreError
from signoff.remedies import Resume
from signoff.runtime.environment import Secrets
from signoff.runtime.ports import Clock
from signoff.runtime.store_port import (
    Commit,
    CommitResult,
    NewItem,
    NewRun,
    RunId,
    Store,
    StoredRun,
)

if TYPE_CHECKING:
    from signoff.runtime.writer import GroupWriter

Rescue = Callable[[], None]
"""Keeps a paid reply for the next process that drives the run, which may be this one."""

CHECKPOINT_FROM_BYTES = 256_000
"""A resume folds at most about this much of the journal; a checkpoint is as large as its state."""


_ERROR_FIELDS = ("reason", "stop_reason", "problem", "error", "info", "feedback", "delta")
"""Fields of events that can contain error messages, and with them secrets. A step's delta can
hold an error too; secrets in a handler's own result were refused before."""


class RunJournal:
    """The events of a run, as far as this process knows them."""

    def __init__(
        self,
        name: str,
        writer: GroupWriter,
        clock: Clock,
        secrets: Secrets,
        new: NewRun | None = None,
    ) -> None:
        self.name = name
        self.state = RunState()
        self.run = RunId(0)
        self.secrets = secrets
        self.error: SignoffError | None = None
        """Why nothing more can be recorded; the runner then stops."""
        self.wake = False
        """Whether an answer arrived just when the run was about to wait."""
        self.notify: Callable[[int, list[ev.Event]], None] | None = None
        """Takes the number of a commit and its events."""
        self._head = 0
        self._fence = 1
        self._writer = writer
        self._clock = clock
        self._new = new
        self._queued: list[tuple[ev.Event, str, Rescue | None]] = []
        """Events for the next commit, as values and as texts."""
        self._committing: list[tuple[ev.Event, str, Rescue | None]] = []
        self._blobs: Blobs = {}
        self.opened: list[NewItem] = []
        """Requests to humans that the next commit opens."""
        self.used: list[int] = []
        """Requests whose answers the next commit consumes."""
        self.withdrawn: list[int] = []
        """Requests that the next commit closes, if they are still open."""
        self._withdraw_all = False
        self._release = False
        self._recorded = 0
        self._handed_over = 0
        self._safe = 0
        """These three count the events that were recorded, passed to the writer, and committed."""
        self._last_step = 0
        """The number of the event that ended the last step."""
        self._since_checkpoint = 0
        self._item_bytes = 0
        """How many bytes of those are results of the current step's items."""
        self._checkpoint_size = 0

    def record(self, event: ev.Event, rescue: Rescue | None = None) -> int:
        """Applies an event, queues it for the next commit and returns its number for `durable`.

        An event that cannot be stored raises and changes nothing. `rescue` is called if the
        event cannot be committed because the journal has failed or fails later.
        """
        if self.error is not None:
            if rescue is not None:
                rescue()
            raise self.error
        event.at = self._clock.now()
        if self.secrets.named:
            self._hide_secrets(event)
        # Encoded before it is folded: a value that is not JSON must not change the state.
        text = encode(ev.to_json(event), self._blobs)
        evolve(self.state, event)
        # Queued only after the fold accepted it: an event that cannot be folded would make
        # every later resume fail.
        self._queued.append((event, text, rescue))
        self._recorded += 1
        if type(event) is ev.StepFinished:
            self._last_step = self._recorded
            self._item_bytes = 0
        elif type(event) is ev.ItemFinished:
            self._item_bytes += len(text)
        self._writer.touch(self)
        return self._recorded

    def _hide_secrets(self, event: ev.Event) -> None:
        """Removes secrets from the error messages in an event."""
        for name in _ERROR_FIELDS:
            value = getattr(event, name, None)
            if value and self.secrets.name_in(value):
                setattr(event, name, self.secrets.hide_in(value))

    def refuse_secrets(self, result: object, step: str) -> None:
        """Raises `BadHandlerResult` for a result that contains a secret."""
        if variable := self.secrets.name_in(result):
            raise BadHandlerResult(
                f"step {step!r} returned the value of {variable}, and results are stored; "
                "leave it out"
            )

    def continue_from(self, stored: StoredRun, fence: int, blob: Callable[[str], str]) -> None:
        """Continues a stored run under a new fence."""
        self.state = folded_state(stored, blob)
        self.run, self._head, self._fence = stored.row.id, stored.row.head, fence
        # Counted across processes: a run of many short ones needs checkpoints too.
        self._checkpoint_size = len(stored.checkpoint or "")
        self._since_checkpoint = sum(len(row.events) for row in stored.tail)

    def encode(self, value: object) -> str:
        """Returns a value as it is stored; long texts in it are written with the next commit."""
        return encode(value, self._blobs)

    def withdraw_items(self) -> None:
        """Closes all open requests with the next commit."""
        self.opened.clear()
        self._withdraw_all = True

    def release(self) -> None:
        """Gives up the run's lease with the next commit."""
        self._release = True

    async def durable(self, number: int | None = None) -> None:
        """Returns when an event, or everything recorded so far, is committed; raises on failure.

        It waits for one event and not for later ones of its siblings: otherwise the calls of a
        fan-out would start one after the other.
        """
        await self._reached(self._recorded if number is None else number)

    async def step_durable(self) -> None:
        """Returns when the end of the last step is committed; later events may not be yet."""
        await self._reached(self._last_step)

    async def _reached(self, number: int) -> None:
        while self.error is None and self._safe < number:
            await self._writer.commit()
        if self.error is not None:
            raise self.error

    # Called by the writer

    def take_commit(self) -> Commit:
        """Returns everything queued as one commit, and starts a new queue."""
        state = self.state
        events = f"[{','.join([text for _, text, _ in self._queued])}]"
        commit = Commit(
            run=self.run,
            fence=self._fence,
            head=self._head,
            events=events,
            status=state.status,
            step=state.step,
            iteration=state.iteration,
            reason=state.reason,
            due_at=state.due_at,
            at=state.updated_at,
            blobs=self._blobs,
            opened=self.opened,
            used=self.used,
            withdraw=self._withdraw_all,
            withdrawn=self.withdrawn,
            ledger=list(state.ledger.values()) if self._release else (),
            release=self._release,
            new=self._new,
        )
        # A checkpoint costs as much as its state is large. Writing one only after four times as
        # many bytes of events keeps the total linear in the length of the run. The results of a
        # fan-out stay in the state until its step ends, so until then a checkpoint saves none.
        self._since_checkpoint += len(events)
        saved = self._since_checkpoint - self._item_bytes
        if saved > max(CHECKPOINT_FROM_BYTES, 4 * self._checkpoint_size):
            commit.checkpoint = encode(state_to_json(state), self._blobs, CHECKPOINT_DEPTH)
            self._checkpoint_size = len(commit.checkpoint)
            self._since_checkpoint = self._item_bytes = 0
        self._committing, self._queued = self._queued, []
        self._handed_over = self._recorded
        self._blobs, self.opened, self.used, self.withdrawn = {}, [], [], []
        self._withdraw_all = self._release = False
        return commit

    def settle(self, result: CommitResult) -> None:
        """Processes the store's result for the commit that was taken last."""
        if not result.accepted:
            self.fail(self._refusal())
            return
        committed, self._committing = self._committing, []
        self._head += 1
        self._new = None
        self._safe = self._handed_over
        self.wake = result.wake
        if result.run is not None:
            self.run = result.run
        if self.notify is not None:
            self.notify(self._head, [event for event, _, _ in committed])

    def _refusal(self) -> SignoffError:
        if self._new is None:
            return LeaseLost(f"another process has taken over run {self.name!r}; this one stops")
        problem = f"run {self.name!r} already exists; choose another name"
        return NameTaken(problem, remedy=Resume(self.name))

    def fail(self, error: SignoffError) -> None:
        """Stops the journal: nothing more can be recorded.

        A run that is lost stays lost, whatever else fails: replies in memory would help only a
        process that continues the run, and this one does not.
        """
        if not isinstance(self.error, LeaseLost):
            self.error = self._with_remedy(error)
        lost = [*self._committing, *self._queued]
        self._committing, self._queued = [], []
        for _event, _text, rescue in lost:
            if rescue is not None:
                rescue()

    def _with_remedy(self, error: SignoffError) -> SignoffError:
        if not isinstance(error, StoreError) or error.remedies or self._new is not None:
            return error
        # A copy, because the runs of a transaction share the error.
        own = copy(error)
        own.remedies = (Resume(self.name),)
        own.__cause__ = error
        return own


def unchanged(store: Store, loaded: StoredRun, fence: int) -> StoredRun:
    """Returns a run that was loaded before it was taken; loads it again if it has changed since.

    A run without an owner does not change until it is taken, and its new fence shows whether only
    we took it. The last owner of any other run could write until we did.
    """
    row = loaded.row
    if row.owner is None and fence == row.fence + 1:
        return loaded
    return loaded if store.row(row.name).head == row.head else store.load(row.name)


def folded_state(stored: StoredRun, blob: Callable[[str], str]) -> RunState:
    """Returns a run's state: its last checkpoint and the events after it, folded."""
    start = None
    if stored.checkpoint is not None:
        start = state_from_json(decode(stored.checkpoint, blob))
    return fold(events_in(stored.tail, blob), start)


def events_in(rows: Iterable[tuple[int, str]], blob: Callable[[str], str]) -> Iterator[ev.Event]:
    """Yields the events of stored commits, oldest first."""
    for _number, events in rows:
        yield from map(ev.from_json, decode(events, blob))
