"""A clock that stands still until a test moves it."""

from __future__ import annotations

import asyncio

START = 1_700_000_000.0
"""A moment like any other; tests that print it can be compared."""


class FrozenClock:
    """Tells the same time until it is advanced; sleeping on it takes no time at all."""

    def __init__(self, now: float = START) -> None:
        self._wall = now
        self._steady = 0.0
        self.slept: list[float] = []
        """How long everybody who slept wanted to, in order."""

    def now(self) -> float:
        """Returns seconds since 1970."""
        return self._wall

    def monotonic(self) -> float:
        """Returns seconds that only ever grow."""
        return self._steady

    async def sleep(self, seconds: float) -> None:
        """Advances the clock by as much, and lets others run."""
        self.slept.append(seconds)
        self.advance(max(0.0, seconds))
        await asyncio.sleep(0)

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        if seconds < 0:
            raise ValueError("time does not run backwards; jump() sets the wall clock back")
        self._wall += seconds
        self._steady += seconds

    def jump(self, seconds: float) -> None:
        """Sets the wall clock forward or back, as an administrator or a time server does."""
        self._wall += seconds
