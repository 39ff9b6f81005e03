"""Group commit: all events of one tick of the event loop share one transaction.

A durable commit waits for the disk, which takes about as long for one event as for a thousand.
So the number of commits decides how fast a process is, not the number of events. Each run adds
its events to its own journal and marks it dirty. One commit at the end of the tick then writes
all dirty journals together: a chain of steps costs one commit per step, and a fan-out of a
thousand calls a handful.

The rule that makes this safe is in `RunJournal`: no effect starts before the commit of its
`effect_started` has returned. Events that no one waits for, such as the end of an item or a
reply that came within milliseconds, may wait a few ticks for company. A slower reply may have
been expensive, so the effect runner commits it before the handler continues.

The commit runs on the event loop itself. There it takes a fraction of a millisecond, less than
handing it to a thread and back. When the disk turns out to be slow, or another process holds
the database, a thread makes the next commits, so that the loop never blocks for long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from signoff.errors import EngineError, SignoffError, StoreBusy, WriteFailed
from signoff.runtime.journal import RunJournal
from signoff.runtime.ports import Clock
from signoff.runtime.store_port import Commit, CommitResult, Store

SLOW_SECONDS = 0.02
"""A commit on the loop that takes longer makes a thread take over."""

THREADED_COMMITS = 50
"""How many commits the thread makes before the loop tries again."""

LAZY_TICKS = 3
"""Ticks that a commit is delayed while no one waits for it. A reply wakes its handler in the
next tick, and the handler's next request can then share the commit."""


class GroupWriter:
    """Commits the journals of all runs of a process together."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._dirty: dict[RunJournal, None] = {}
        self._waiters: list[asyncio.Future[None]] = []
        self._scheduled = False
        self._ticks = 0
        self._threaded = 0
        self._thread: asyncio.Future[list[CommitResult]] | None = None
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
        commits: list[Commit] = []
        try:
            commits.extend(journal.take_commit() for journal in batch)
            if self._threaded > 0:
                self._threaded -= 1
                self._start_thread(batch, commits)
                return
            started = self._clock.monotonic()
            results = self._store.commit(commits, wait=False)
        except StoreBusy:
            self._threaded = THREADED_COMMITS
            self._start_thread(batch, commits)
            return
        except Exception as error:  # noqa: BLE001  # otherwise every run would wait forever
            self._settle(batch, _as_signoff_error(error))
            return
        except BaseException:
            self._settle(batch, WriteFailed("the program ended during a write; resume the run"))
            raise
        if self._clock.monotonic() - started > SLOW_SECONDS:
            self._threaded = THREADED_COMMITS
        self._settle(batch, results)

    def _start_thread(self, batch: list[RunJournal], commits: list[Commit]) -> None:
        # Not a task: a task that is cancelled before its first step would never call back, and
        # the runs that wait for this commit would hang.
        self._thread = asyncio.get_running_loop().run_in_executor(None, self._store.commit, commits)
        self._thread.add_done_callback(partial(self._thread_ended, batch))

    def _thread_ended(
        self, batch: list[RunJournal], commit: asyncio.Future[list[CommitResult]]
    ) -> None:
        self._thread = None
        error = commit.exception()
        self._settle(batch, commit.result() if error is None else _as_signoff_error(error))
        if self._dirty and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._tick)

    def _settle(
        self, batch: list[RunJournal], outcome: Sequence[CommitResult] | SignoffError
    ) -> None:
        if isinstance(outcome, SignoffError):
            for journal in batch:
                journal.fail(outcome)
        elif len(outcome) != len(batch):
            for journal in batch:
                journal.fail(WriteFailed("the store did not answer for every commit"))
        else:
            for journal, result in zip(batch, outcome, strict=True):
                journal.settle(result)
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


def _as_signoff_error(error: BaseException) -> SignoffError:
    """Returns the error that runs get; anything but a `SignoffError` is a bug in the store."""
    if isinstance(error, SignoffError):
        return error
    bug = EngineError(f"the store failed unexpectedly with {type(error).__name__}: {error}")
    bug.__cause__ = error
    return bug
