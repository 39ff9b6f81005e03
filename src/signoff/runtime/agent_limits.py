"""How many calls an agent takes at once, and how often."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass

from signoff.runtime.ports import Clock


@dataclass(frozen=True)
class AgentLimits:
    """Declared per agent in the settings; None means no limit."""

    concurrency: int | None = None
    """Concurrent calls."""
    calls: int | None = None
    """Calls started within one `period`."""
    period: float = 60.0
    """Seconds."""
    attempts: int | None = None
    """How often a call with transient errors is tried; None means the engine's default."""


class AgentGate:
    """Lets calls to one agent through as its limits allow, first come first served."""

    def __init__(self, limits: AgentLimits, clock: Clock) -> None:
        self.attempts = limits.attempts
        """How often a call is tried, if the agent sets its own number."""
        self._limits = limits
        self._clock = clock
        self._slots = asyncio.Semaphore(limits.concurrency) if limits.concurrency else nullcontext()
        self._turn = asyncio.Lock()
        self._started: deque[float] = deque()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Holds one of the agent's slots for the duration of a call."""
        async with self._slots:
            await self.pace()
            yield

    async def pace(self) -> None:
        """Returns when another call may start; a retry counts as a call too."""
        if self._limits.calls is None:
            return
        async with self._turn:
            now = self._clock.monotonic()
            while self._started and now - self._started[0] >= self._limits.period:
                self._started.popleft()
            if len(self._started) >= self._limits.calls:
                await self._clock.sleep(self._started[0] + self._limits.period - now)
                self._started.popleft()
            self._started.append(self._clock.monotonic())
