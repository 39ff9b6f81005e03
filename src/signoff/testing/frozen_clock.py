"""A clock that only moves when a test advances it."""

from __future__ import annotations

import asyncio

START = 1_700_000_000.0
"""An arbitrary fixed time, so that output with times is reproducible."""


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
