"""How many calls an agent takes at once, and how often."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from signoff.runtime.ports import Clock


@dataclass(frozen=True)
class AgentLimits:
    """Declared per agent in the settings; None means no limit."""

    concurrency: int | None = None
    """Calls under way at the same time."""
    calls: int | None = None
    """Calls begun within one `period`."""
    period: float = 60.0
    """Seconds."""
    attempts: int | None = None
    """How often a call is tried that meets passing faults; None means the engine's own."""


class AgentGate:
    """Lets calls to one agent through as its limits allow, first come first served."""

    def __init__(self, limits: AgentLimits, clock: Clock) -> None:
        self.attempts = limits.attempts
        """How often a call is tried, where the agent has a number of its own."""
        self._limits = limits
        self._clock = clock
        self._slots = asyncio.Semaphore(limits.concurrency) if limits.concurrency else None
        self._turn = asyncio.Lock()
        self._begun: deque[float] = deque()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Holds one of the agent's places for the time of a call."""
        if self._slots is None:
            await self.pace()
            yield
            return
        async with self._slots:
            await self.pace()
            yield

    async def pace(self) -> None:
        """Returns when one more call may begin; every further attempt at one is a call too."""
        if self._limits.calls is None:
            return
        async with self._turn:
            now = self._clock.monotonic()
            while self._begun and now - self._begun[0] >= self._limits.period:
                self._begun.popleft()
            if len(self._begun) >= self._limits.calls:
                await self._clock.sleep(self._begun[0] + self._limits.period - now)
                self._begun.popleft()
            self._begun.append(self._clock.monotonic())
