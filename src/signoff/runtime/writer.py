"""Group commit: what happens in one turn of the event loop shares one transaction.

The commit itself runs on the loop, where it costs a fraction of a millisecond and no
hand-over. When the disk turns out slow, or another process holds the database, a thread
takes over for a while, so the loop never waits long.
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
"""How many commits the thread keeps before the loop tries again."""

LAZY_TURNS = 3
"""Turns of the loop a commit waits for company while nobody waits for it: a reply wakes its
handler in the next turn, and the handler's next request can then share the commit."""


class GroupWriter:
    """Commits the journals of all runs of a process together."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._dirty: dict[RunJournal, None] = {}
        self._waiters: list[asyncio.Future[None]] = []
        self._scheduled = False
        self._turns = 0
        self._threaded = 0
        self._thread: asyncio.Future[list[CommitResult]] | None = None
        self._led = False
        """Whether somebody is about to commit at the end of this turn."""

    def touch(self, journal: RunJournal) -> None:
        """Notes that a journal has something to commit."""
        self._dirty[journal] = None
        if not self._scheduled and self._thread is None:
            asyncio.get_running_loop().call_soon(self._turn)
            self._scheduled = True
            self._turns = 0

    async def commit(self) -> None:
        """Returns after the next commit, which whoever asks first makes at the end of the turn.

        Made where it is waited for, it saves the way through a future and another turn. What
        was noted a turn ago has had its company, and is committed at once.
        """
        if self._led or self._thread is not None or self._threaded:
            await self.settled()
            return
        if self._dirty and self._turns:
            self._commit()
            return
        self._led = True
        try:
            # The others of this turn join in.
            await asyncio.sleep(0)
        finally:
            # Cut off here, it is made by the turn that was planned when something was noted.
            self._led = False
        if self._dirty and self._thread is None:
            self._commit()

    def settled(self) -> asyncio.Future[None]:
        """Returns a future that is done after the next commit.

        Everybody gets one of their own: awaiting a shared one, whoever is cancelled would
        cancel it for all the others.
        """
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        return waiter

    async def close(self) -> None:
        """Waits for a commit under way."""
        while self._thread is not None or self._dirty:
            await self.settled()

    def _turn(self) -> None:
        self._turns += 1
        if not self._waiters and self._turns <= LAZY_TURNS:
            asyncio.get_running_loop().call_soon(self._turn)
            return
        self._scheduled = False
        # While the thread is at it, nothing else may be handed over: it goes on by itself.
        if self._dirty and self._thread is None:
            self._commit()

    def _commit(self) -> None:
        batch = list(self._dirty)
        self._dirty.clear()
        self._turns = 0
        commits: list[Commit] = []
        try:
            commits.extend(journal.take_commit() for journal in batch)
            if self._threaded > 0:
                self._threaded -= 1
                self._start_thread(batch, commits)
                return
            began = self._clock.monotonic()
            verdicts = self._store.commit(commits, wait=False)
        except StoreBusy:
            self._threaded = THREADED_COMMITS
            self._start_thread(batch, commits)
            return
        except Exception as error:  # noqa: BLE001  # without a verdict every run would wait for ever
            self._settle(batch, _reported(error))
            return
        except BaseException:
            self._settle(batch, _cut_off())
            raise
        if self._clock.monotonic() - began > SLOW_SECONDS:
            self._threaded = THREADED_COMMITS
        self._settle(batch, verdicts)

    def _start_thread(self, batch: list[RunJournal], commits: list[Commit]) -> None:
        # No task: one that is cancelled before it begins would never let anybody go.
        self._thread = asyncio.get_running_loop().run_in_executor(None, self._store.commit, commits)
        self._thread.add_done_callback(partial(self._thread_ended, batch))

    def _thread_ended(
        self, batch: list[RunJournal], commit: asyncio.Future[list[CommitResult]]
    ) -> None:
        self._thread = None
        error = commit.exception()
        self._settle(batch, commit.result() if error is None else _reported(error))
        if self._dirty and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

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
            for journal, verdict in zip(batch, outcome, strict=True):
                journal.settle(verdict)
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


def _reported(error: BaseException) -> SignoffError:
    """Returns an error as the runs are told of it; one that is not ours is a bug in the store."""
    if isinstance(error, SignoffError):
        return error
    bug = EngineError(f"the store failed unforeseen with {type(error).__name__}: {error}")
    bug.__cause__ = error
    return bug


def _cut_off() -> SignoffError:
    """Lets go whoever waits for a write while the program is being ended: none will come."""
    return WriteFailed("the program was ended during a write; resume the run")
