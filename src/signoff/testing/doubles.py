"""Doubles for tests: a clock that stands still, stores that fail, a log of what was really done."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from signoff.core.effects import AgentRequest, Reply
from signoff.runtime.ports import Agent, Call
from signoff.runtime.store_port import Store

if TYPE_CHECKING:
    # Any store's methods will do; with them, the type checker checks overriding methods.
    from signoff.store.sqlite import SqliteStore as _Methods
else:
    _Methods = object

START = 1_700_000_000.0
"""An arbitrary fixed time, so that output with times is reproducible."""

When = Literal["before", "after"]
"""Whether the process is killed before the write or after it has reached the disk."""

WRITES = {
    *("commit", "take", "beat", "leave", "ask_cancel", "adopt", "answer", "keep_late"),
    *("keep_summaries", "enqueue", "claim", "register", "stage", "admit", "retire"),
}
"""The methods that change a store."""


class FrozenClock:
    """Shows the same time until it is advanced; sleeping on it takes no real time."""

    def __init__(self, now: float = START) -> None:
        self._wall = now
        self._steady = 0.0
        self.slept: list[float] = []
        """The seconds of every sleep, in order."""

    def now(self) -> float:
        """Returns seconds since 1970."""
        return self._wall

    def monotonic(self) -> float:
        """Returns seconds that never decrease."""
        return self._steady

    async def sleep(self, seconds: float) -> None:
        """Advances the clock by `seconds` and lets other tasks run."""
        self.slept.append(seconds)
        self.advance(max(0.0, seconds))
        await asyncio.sleep(0)

    def advance(self, seconds: float) -> None:
        """Advances both clocks."""
        if seconds < 0:
            raise ValueError("seconds is negative; use jump() to set the wall clock back")
        self._wall += seconds
        self._steady += seconds

    def jump(self, seconds: float) -> None:
        """Sets only the wall clock forward or back, as an administrator or a time server does."""
        self._wall += seconds


class WrappedStore(_Methods):
    """Forwards every call; override the methods that should count, fail or be slow."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner

    def reopen(self) -> Store:
        """Opens the inner store again, unwrapped."""
        return self.inner.reopen()

    def forward(self, method: str, *args: Any, **options: Any) -> Any:
        """Calls a method of the inner store; override this to act on every call."""
        return getattr(self.inner, method)(*args, **options)


def _forwarding(name: str) -> Callable[..., Any]:
    def method(self: WrappedStore, *args: Any, **options: Any) -> Any:
        return self.forward(name, *args, **options)

    return method


# Real methods instead of `__getattr__`, so that overriding methods can call `super()`.
for _name in vars(Store):
    if not _name.startswith("_") and _name not in vars(WrappedStore):
        setattr(WrappedStore, _name, _forwarding(_name))


def _kill_this_process() -> None:
    # No handler may run and nothing may be flushed, as when the power fails.
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


class EffectLog:
    """The effects that were really performed, one line each."""

    def __init__(self, directory: Path | str) -> None:
        self.directory = Path(directory)
        self.path = self.directory / "effects.log"

    def note(self, key: str) -> None:
        """Records that an effect is being performed, in one write."""
        with self.path.open("ab", buffering=0) as file:
            file.write(f"{key}{os.linesep}".encode())

    def keys(self) -> list[str]:
        """Returns everything that was performed, in order."""
        return self.path.read_text("utf-8").splitlines() if self.path.exists() else []

    def watch(self, agent: Agent) -> Agent:
        """Returns the agent, wrapped so that each of its calls is recorded."""
        return _WatchedAgent(agent, self)


class _WatchedAgent:
    def __init__(self, agent: Agent, log: EffectLog) -> None:
        self._agent = agent
        self._log = log

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        parts = (call.run, call.step, call.visit, call.step_attempt, call.effect)
        self._log.note("/".join(map(str, parts)))
        return await self._agent.ask(request, call)
