"""The real clock. `signoff.testing` has one that stands still."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """Tells the time; a wall clock that jumps does not disturb it within one process."""

    def __init__(self) -> None:
        # Wall time is read once: durations and order inside a process then follow the
        # monotonic clock, whatever an administrator or a time server does to the other.
        self._offset = time.time() - time.monotonic()

    def now(self) -> float:
        """Returns seconds since 1970."""
        return time.monotonic() + self._offset

    def monotonic(self) -> float:
        """Returns seconds that only ever grow."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Waits."""
        await asyncio.sleep(seconds)
