"""A store that kills its own process at one of its writes."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from signoff.runtime.store_port import Store
from signoff.testing.wrapped_store import WrappedStore

When = Literal["before", "after"]
"""Whether the process is killed before the write or after it has reached the disk."""

WRITES = {
    *("commit", "take", "beat", "leave", "ask_cancel", "adopt", "answer", "keep_late"),
    *("keep_summaries", "enqueue", "claim", "register"),
}
"""The methods that change a store."""


def _kill_this_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Countdown:
    """Counts the writes of a process and kills it at one of them."""

    at: int
    when: When
    kill: Callable[[], None] = _kill_this_process
    writes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def write(self) -> Iterator[None]:
        """Counts one write, and kills before or after it if it is the fatal one."""
        with self._lock:
            self.writes += 1
            fatal = self.writes == self.at
        if fatal and self.when == "before":
            self.kill()
        yield
        if fatal and self.when == "after":
            self.kill()


class CrashingStore(WrappedStore):
    """Ends its process with SIGKILL at the `at`-th write, as a power cut or the OOM killer would.

    Every call that changes the store counts as a write; see `WRITES`.
    """

    def __init__(
        self, inner: Store, *, at: int, when: When = "before", countdown: Countdown | None = None
    ) -> None:
        super().__init__(inner)
        self._countdown = countdown or Countdown(at, when)

    @property
    def writes(self) -> int:
        """How many writes there have been so far."""
        return self._countdown.writes

    def reopen(self) -> Store:
        """Opens the inner store again; its writes are counted together with these."""
        return CrashingStore(self.inner.reopen(), at=self._countdown.at, countdown=self._countdown)

    def forward(self, method: str, *args: Any, **options: Any) -> Any:
        """Counts the call if it is a write."""
        if method not in WRITES:
            return super().forward(method, *args, **options)
        with self._countdown.write():
            return super().forward(method, *args, **options)
