"""A store that kills its own process at one of its writes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from signoff.runtime.store_port import Alive, Commit, CommitResult, InboxItem, Owner, RunId, Store
from signoff.testing.wrapped_store import WrappedStore

When = Literal["before", "after"]
"""Whether the process is killed before the write or after it has reached the disk."""


class Countdown:
    """Counts writes and kills the process at one of them."""

    def __init__(self, at: int, when: When, kill: Callable[[], None]) -> None:
        self.writes = 0
        self._at = at
        self._when = when
        self._kill = kill
        self._lock = threading.Lock()

    @contextmanager
    def write(self) -> Iterator[None]:
        """Counts one write, and kills before or after it if it is the fatal one."""
        with self._lock:
            self.writes += 1
            fatal = self.writes == self._at
        if fatal and self._when == "before":
            self._kill()
        yield
        if fatal and self._when == "after":
            self._kill()


class CrashingStore(WrappedStore):
    """Ends its process with SIGKILL at the `at`-th write, as a power cut or the OOM killer would.

    Every call that changes the store is a write: a commit, an answer, a lease that is taken,
    a heartbeat.
    """

    def __init__(
        self,
        inner: Store,
        *,
        at: int,
        when: When = "before",
        countdown: Countdown | None = None,
    ) -> None:
        super().__init__(inner)
        self._countdown = countdown or Countdown(at, when, _kill_this_process)
        self._at, self._when = at, when

    @property
    def writes(self) -> int:
        """How many writes there have been so far."""
        return self._countdown.writes

    def reopen(self) -> Store:
        """Opens the inner store again; its writes are counted together with these."""
        inner = self.inner.reopen()
        return CrashingStore(inner, at=self._at, when=self._when, countdown=self._countdown)

    def commit(self, commits: Sequence[Commit], *, wait: bool = True) -> list[CommitResult]:
        """Counts as a write."""
        with self._countdown.write():
            return self.inner.commit(commits, wait=wait)

    def take(self, run: RunId, owner: Owner, now: float, alive: Alive) -> int:
        """Counts as a write."""
        with self._countdown.write():
            return self.inner.take(run, owner, now, alive)

    def beat(self, owner: Owner, until: float) -> None:
        """Counts as a write."""
        with self._countdown.write():
            self.inner.beat(owner, until)

    def leave(self, owner: Owner) -> None:
        """Counts as a write."""
        with self._countdown.write():
            self.inner.leave(owner)

    def ask_cancel(self, run: RunId, why: str) -> None:
        """Counts as a write."""
        with self._countdown.write():
            self.inner.ask_cancel(run, why)

    def adopt(self, run: RunId, definition: str, description: str) -> None:
        """Counts as a write."""
        with self._countdown.write():
            self.inner.adopt(run, definition, description)

    def answer(self, number: int, answer: str, by: str, at: float, digest: str) -> InboxItem:
        """Counts as a write."""
        with self._countdown.write():
            return self.inner.answer(number, answer, by, at, digest)

    def keep_late(self, run: RunId, effect: str, attempt: int, outcome: str) -> None:
        """Counts as a write."""
        with self._countdown.write():
            self.inner.keep_late(run, effect, attempt, outcome)


def _kill_this_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
