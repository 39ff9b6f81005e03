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

import asyncio
from collections.abc import Callable, Sequence
from copy import copy
from functools import partial

from signoff.core import errors
from signoff.core import events as ev
from signoff.core.codec import Blobs, encode
from signoff.core.fold import evolve, state_to_json
from signoff.core.frozen import CHECKPOINT_DEPTH
from signoff.core.remedies import Resume
from signoff.core.run_state import RunState
from signoff.runtime import store_port as port
from signoff.runtime.environment import Secrets
from signoff.runtime.ports import Clock
from signoff.runtime.store_port import folded_state

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
        new: port.NewRun | None = None,
    ) -> None:
        self.name = name
        self.state = RunState()
        self.run = port.RunId(0)
        self.secrets = secrets
        self.error: errors.SignoffError | None = None
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
        self.opened: list[port.NewItem] = []
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
        self.last_step = 0
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
            self.last_step = self._recorded
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
            raise errors.BadHandlerResult(
                f"step {step!r} returned the value of {variable}, and results are stored; "
                "leave it out"
            )

    def continue_from(self, stored: port.StoredRun, fence: int, blob: Callable[[str], str]) -> None:
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
        last = self._recorded if number is None else number
        while self.error is None and self._safe < last:
            await self._writer.commit()
        if self.error is not None:
            raise self.error

    # Called by the writer

    def take_commit(self) -> port.Commit:
        """Returns everything queued as one commit, and starts a new queue."""
        state = self.state
        events = f"[{','.join([text for _, text, _ in self._queued])}]"
        commit = port.Commit(
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

    def settle(self, result: port.CommitResult) -> None:
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

    def _refusal(self) -> errors.SignoffError:
        if self._new is None:
            return errors.LeaseLost(
                f"another process has taken over run {self.name!r}; this one stops"
            )
        problem = f"run {self.name!r} already exists; choose another name"
        return errors.NameTaken(problem, remedy=Resume(self.name))

    def fail(self, error: errors.SignoffError) -> None:
        """Stops the journal: nothing more can be recorded.

        A run that is lost stays lost, whatever else fails: replies in memory would help only a
        process that continues the run, and this one does not.
        """
        if not isinstance(self.error, errors.LeaseLost):
            self.error = self._with_remedy(error)
        lost = [*self._committing, *self._queued]
        self._committing, self._queued = [], []
        for _event, _text, rescue in lost:
            if rescue is not None:
                rescue()

    def _with_remedy(self, error: errors.SignoffError) -> errors.SignoffError:
        if not isinstance(error, errors.StoreError) or error.remedies or self._new is not None:
            return error
        # A copy, because the runs of a transaction share the error.
        own = copy(error)
        own.remedies = (Resume(self.name),)
        own.__cause__ = error
        return own


# Group commit: all events of one tick of the event loop share one transaction.
#
# A durable commit waits for the disk, which takes about as long for one event as for a thousand.
# So the number of commits decides how fast a process is, not the number of events. Each run adds
# its events to its own journal and marks it dirty. One commit at the end of the tick then writes
# all dirty journals together: a chain of steps costs one commit per step, and a fan-out of a
# thousand calls a handful.
#
# The rule that makes this safe is in `RunJournal`: no effect starts before the commit of its
# `effect_started` has returned. Events that no one waits for, such as the end of an item or a
# reply that came within milliseconds, may wait a few ticks for company. A slower reply may have
# been expensive, so the effect runner commits it before the handler continues.
#
# The commit runs on the event loop itself. There it takes a fraction of a millisecond, less than
# handing it to a thread and back. When the disk turns out to be slow, or another process holds
# the database, a thread makes the next commits, so that the loop never blocks for long.


SLOW_SECONDS = 0.02
"""A commit on the loop that takes longer makes a thread take over."""

THREADED_COMMITS = 50
"""How many commits the thread makes before the loop tries again."""

LAZY_TICKS = 3
"""Ticks that a commit is delayed while no one waits for it. A reply wakes its handler in the
next tick, and the handler's next request can then share the commit."""


class GroupWriter:
    """Commits the journals of all runs of a process together."""

    def __init__(self, store: port.Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._dirty: dict[RunJournal, None] = {}
        self._waiters: list[asyncio.Future[None]] = []
        self._scheduled = False
        self._ticks = 0
        self._threaded = 0
        self._thread: asyncio.Future[list[port.CommitResult]] | None = None
        self._led = False
        """Whether a caller of `commit` is about to commit at the end of this tick."""

    def touch(self, journal: RunJournal) -> None:
        """Marks a journal as having events to commit."""
        self._dirty[journal] = None
        if not self._scheduled and self._thread is None:
            asyncio.get_running_loop().call_soon(self._tick)
            self._scheduled = True
            self._ticks = 0

    async def commit(self) -> None:
        """Returns after the next commit.

        The first caller in a tick makes the commit itself, after letting the others of the tick
        add their events. That saves a future and another tick. Journals that became dirty in an
        earlier tick have waited for company already and are committed at once.
        """
        if self._led or self._thread is not None or self._threaded:
            await self.settled()
            return
        if self._dirty and self._ticks:
            self._commit()
            return
        self._led = True
        try:
            # Lets the other tasks of this tick record their events first.
            await asyncio.sleep(0)
        finally:
            # If this caller is cancelled, the tick that `touch` scheduled makes the commit.
            self._led = False
        if self._dirty and self._thread is None:
            self._commit()

    def settled(self) -> asyncio.Future[None]:
        """Returns a future that is done after the next commit.

        Each caller gets its own: a caller that is cancelled while it awaits a shared future
        would cancel it for all others.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        return waiter

    async def close(self) -> None:
        """Waits until everything recorded is committed."""
        while self._thread is not None or self._dirty:
            await self.settled()

    def _tick(self) -> None:
        self._ticks += 1
        if not self._waiters and self._ticks <= LAZY_TICKS:
            asyncio.get_running_loop().call_soon(self._tick)
            return
        self._scheduled = False
        # While the thread commits, nothing else may be handed over: a journal's commits must
        # arrive in order. The thread's end schedules the next tick.
        if self._dirty and self._thread is None:
            self._commit()

    def _commit(self) -> None:
        batch = list(self._dirty)
        self._dirty.clear()
        self._ticks = 0
        commits: list[port.Commit] = []
        try:
            commits.extend(journal.take_commit() for journal in batch)
            if self._threaded > 0:
                self._threaded -= 1
                self._start_thread(batch, commits)
                return
            started = self._clock.monotonic()
            results = self._store.commit(commits, wait=False)
        except errors.StoreBusy:
            self._threaded = THREADED_COMMITS
            self._start_thread(batch, commits)
            return
        except Exception as error:  # noqa: BLE001  # otherwise every run would wait forever
            self._settle(batch, _as_signoff_error(error))
            return
        except BaseException:
            self._settle(
                batch, errors.WriteFailed("the program ended during a write; resume the run")
            )
            raise
        if self._clock.monotonic() - started > SLOW_SECONDS:
            self._threaded = THREADED_COMMITS
        self._settle(batch, results)

    def _start_thread(self, batch: list[RunJournal], commits: list[port.Commit]) -> None:
        # Not a task: a task that is cancelled before its first step would never call back, and
        # the runs that wait for this commit would hang.
        self._thread = asyncio.get_running_loop().run_in_executor(None, self._store.commit, commits)
        self._thread.add_done_callback(partial(self._thread_ended, batch))

    def _thread_ended(
        self, batch: list[RunJournal], commit: asyncio.Future[list[port.CommitResult]]
    ) -> None:
        self._thread = None
        error = commit.exception()
        self._settle(batch, commit.result() if error is None else _as_signoff_error(error))
        if self._dirty and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._tick)

    def _settle(
        self, batch: list[RunJournal], outcome: Sequence[port.CommitResult] | errors.SignoffError
    ) -> None:
        if isinstance(outcome, errors.SignoffError):
            for journal in batch:
                journal.fail(outcome)
        elif len(outcome) != len(batch):
            for journal in batch:
                journal.fail(errors.WriteFailed("the store did not answer for every commit"))
        else:
            for journal, result in zip(batch, outcome, strict=True):
                journal.settle(result)
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


def _as_signoff_error(error: BaseException) -> errors.SignoffError:
    """Returns the error that runs get; anything but a `SignoffError` is a bug in the store."""
    if isinstance(error, errors.SignoffError):
        return error
    bug = errors.EngineError(f"the store failed unexpectedly with {type(error).__name__}: {error}")
    bug.__cause__ = error
    return bug
