"""One run's journal: records events, keeps the folded state, knows what is durable.

Recording is immediate and in memory; becoming durable is the writer's work. Nothing a
run does may go outside before `durable()` has returned: that one rule is what makes
everything else safe to do optimistically.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from signoff.core import events as ev
from signoff.core.checkpoint import state_from_json, state_to_json
from signoff.core.codec import Blobs, decode, encode
from signoff.core.fold import evolve, fold
from signoff.core.frozen import CHECKPOINT_DEPTH
from signoff.core.run_state import RunState
from signoff.errors import BadHandlerResult, LeaseLost, NameTaken, SignoffError
from signoff.remedies import Resume
from signoff.runtime.environment import Secrets
from signoff.runtime.ports import Clock
from signoff.runtime.store_port import Commit, CommitResult, NewItem, NewRun, RunId, StoredRun

if TYPE_CHECKING:
    from signoff.runtime.writer import GroupWriter

Rescue = Callable[[], None]
"""Puts what was paid for where the run's new owner finds it."""

CHECKPOINT_FROM_BYTES = 256_000
"""A resume folds at most about this much journal; a checkpoint costs its state's size."""


_PROSE = ("reason", "stop_reason", "problem", "error", "info", "feedback", "delta")
"""Fields of events with texts of errors. A step's delta can hold one too; a secret in what its
handler returned was refused before."""


class RunJournal:
    """What has happened to a run, as far as this process knows."""

    def __init__(
        self,
        *,
        name: str,
        state: RunState,
        writer: GroupWriter,
        clock: Clock,
        run: RunId,
        head: int,
        fence: int,
        new: NewRun | None = None,
        secrets: Secrets = Secrets(),  # noqa: B008  # it cannot change
    ) -> None:
        self.name = name
        self.state = state
        self.run = run
        self.fence = fence
        self.secrets = secrets
        self.error: SignoffError | None = None
        """Why nothing more can be recorded; the runner stops for it."""
        self.wake = False
        """An answer came in just as the run wanted to wait."""
        self.notify: Callable[[list[ev.Event]], None] | None = None
        self._head = head
        self._writer = writer
        self._clock = clock
        self._new = new
        self._events: list[ev.Event] = []
        self._texts: list[str] = []
        self._under_way: list[ev.Event] = []
        self._rescues: list[Rescue] = []
        self._rescues_under_way: list[Rescue] = []
        self._blobs: Blobs = {}
        self._opened: list[NewItem] = []
        self._used: list[int] = []
        self._withdraw = False
        self._withdrawn: list[int] = []
        self._release = False
        self._recorded = 0
        self._handed_over = 0
        self._safe = 0
        """How many events were recorded, given to the writer, and made durable."""
        self._last_step = 0
        """The number of the event that ended the last step."""
        self._since_checkpoint = 0
        self._checkpoint_size = 0

    def record(self, event: ev.Event, rescue: Rescue | None = None) -> int:
        """Applies an event, queues it for the next commit and returns its number for `durable`.

        A bad value changes nothing.
        `rescue` is called should that commit be refused, because the run is no longer ours.
        """
        if self.error is not None:
            raise self.error
        event.at = self._clock.now()
        if self.secrets.named:
            self._hide(event)
        text = encode(ev.to_json(event), self._blobs)
        evolve(self.state, event)
        # Only what can be folded is kept: anything else would stop every resume.
        self._texts.append(text)
        self._events.append(event)
        self._recorded += 1
        if rescue is not None:
            self._rescues.append(rescue)
        if type(event) is ev.StepFinished:
            self._last_step = self._recorded
        self._writer.touch(self)
        return self._recorded

    def _hide(self, event: ev.Event) -> None:
        """Takes secrets out of what an event says went wrong, whatever raised it."""
        for name in _PROSE:
            value = getattr(event, name, None)
            if value and self.secrets.name_in(value):
                setattr(event, name, self.secrets.hide_in(value))

    def refuse_secrets(self, result: object, step: str) -> None:
        """Raises `BadHandlerResult` for a result that must not be stored as it is."""
        if variable := self.secrets.name_in(result):
            raise BadHandlerResult(
                f"step {step!r} returned the value of {variable}; results are stored, so leave "
                "it out"
            )

    def go_on_from(self, stored: StoredRun) -> None:
        """Counts what earlier processes stored; many short lives need checkpoints as well."""
        self._checkpoint_size = len(stored.checkpoint or "")
        self._since_checkpoint = sum(len(row.events) for row in stored.tail)

    def kept(self, value: object) -> str:
        """Returns a value's stored form; long texts in it go out with the next commit."""
        return encode(value, self._blobs)

    def open_item(self, item: NewItem) -> None:
        """Opens a request to a person with the next commit."""
        self._opened.append(item)

    def use_item(self, number: int) -> None:
        """Consumes an answer with the next commit."""
        self._used.append(number)

    def withdraw_item(self, number: int) -> None:
        """Closes one request with the next commit, if it is still open."""
        self._withdrawn.append(number)

    def withdraw_items(self) -> None:
        """Closes what is still open with the next commit."""
        self._opened.clear()
        self._withdraw = True

    def release(self) -> None:
        """Lets go of the run with the next commit."""
        self._release = True

    @property
    def saved(self) -> bool:
        """Whether everything recorded is durable."""
        return self._safe == self._recorded

    async def durable(self, number: int | None = None) -> None:
        """Returns when an event, or everything until now, is safe; raises when it never will be.

        What siblings record meanwhile is not waited for, or they would go one by one.
        """
        await self._reached(self._recorded if number is None else number)

    async def step_durable(self) -> None:
        """Returns when the last finished step is safe; later events may still be on their way."""
        await self._reached(self._last_step)

    async def _reached(self, number: int) -> None:
        while self.error is None and self._safe < number:
            await self._writer.commit()
        if self.error is not None:
            raise self.error

    # What follows is between the journal and its writer.

    def take_commit(self) -> Commit:
        """Hands over everything queued, as one commit."""
        state = self.state
        events = f"[{','.join(self._texts)}]"
        commit = Commit(
            run=self.run,
            fence=self.fence,
            head=self._head,
            events=events,
            status=state.status,
            step=state.step,
            iteration=state.iteration,
            reason=state.reason,
            due_at=state.due_at,
            at=state.updated_at,
            blobs=self._blobs,
            opened=self._opened,
            used=self._used,
            withdraw=self._withdraw,
            withdrawn=self._withdrawn,
            ledger=list(state.ledger.values()) if self._release else (),
            release=self._release,
            new=self._new,
        )
        self._since_checkpoint += len(events)
        if self._since_checkpoint > max(CHECKPOINT_FROM_BYTES, 4 * self._checkpoint_size):
            commit.checkpoint = encode(state_to_json(state), self._blobs, CHECKPOINT_DEPTH)
            self._checkpoint_size = len(commit.checkpoint)
            self._since_checkpoint = 0
        self._under_way, self._events = self._events, []
        self._handed_over = self._recorded
        self._rescues_under_way, self._rescues = self._rescues, []
        self._texts, self._blobs = [], {}
        self._opened, self._used, self._withdrawn = [], [], []
        self._withdraw = self._release = False
        return commit

    def settle(self, verdict: CommitResult) -> None:
        """Takes the store's verdict on the commit handed over last."""
        done, self._under_way = self._under_way, []
        if not verdict.accepted:
            self.fail(
                NameTaken(
                    f"a run called {self.name!r} exists; choose another name",
                    remedy=Resume(self.name),
                )
                if self._new is not None
                else LeaseLost(f"another process took run {self.name!r} over; this one stops")
            )
            for rescue in (*self._rescues_under_way, *self._rescues):
                rescue()
            return
        self._head += 1
        self._new = None
        self._safe = self._handed_over
        self.wake = verdict.wake
        if verdict.run is not None:
            self.run = verdict.run
        if self.notify is not None:
            self.notify(done)

    def fail(self, error: SignoffError) -> None:
        """Stops the journal: nothing more can be recorded."""
        self.error = error
        self._under_way = []
        self._events = []


def folded_state(stored: StoredRun, blob: Callable[[str], str]) -> RunState:
    """Returns a run as its journal has it: the last checkpoint and the events after it."""
    start = None
    if stored.checkpoint is not None:
        start = state_from_json(decode(stored.checkpoint, blob))
    rows = (decode(row.events, blob) for row in stored.tail)
    return fold((ev.from_json(event) for row in rows for event in row), start)
