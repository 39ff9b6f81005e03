"""How tests wait: for a condition, with a timeout that only a real hang reaches.

A shorter timeout would make tests fail on a busy machine. `SkippingLoop` is for timeouts of the
product itself: they are long enough for any machine, and the test skips ahead once the code that
should time out hangs.
"""

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_SECONDS = 150.0
"""Longer than anything takes on a busy machine, shorter than the time a whole test may take."""

STEP_SECONDS = 0.01

IDLE_TURNS = 200
"""Turns of the loop in which everything is done that needs no thread and no other process."""


def wait_until(holds: Callable[[], object], what: str = "it") -> None:
    """Blocks until a condition holds."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end, f"{what} did not happen in time"
        time.sleep(STEP_SECONDS)


async def until(holds: Callable[[], object], what: str = "it") -> None:
    """Waits until a condition holds, without blocking the event loop."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < end, f"{what} did not happen in time"
        await asyncio.sleep(STEP_SECONDS)


def written(path: Path) -> str:
    """Returns the text of a file that another process writes; empty until it is complete."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return ""
    return text if text.endswith("\n") else ""


def whole_lines(path: Path) -> list[str]:
    """Returns the complete lines of a file that another process writes."""
    if not path.exists():
        return []
    whole, _, _ = path.read_text().rpartition("\n")
    return whole.splitlines()


class SkippingLoop:
    """Lets the timers of the running loop come due as soon as something hangs."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._real = self._loop.time
        self._skipped = 0.0
        self._over = threading.Event()
        # The loop asks itself for the time of its timers, so an attribute of this one is enough.
        self._loop.time = self._time  # type: ignore[method-assign]  # this loop only

    async def hang(self) -> None:
        """Hangs until it is cancelled; every time-out of up to an hour is then due."""
        # Whatever else can be done without waiting is done before.
        for _ in range(IDLE_TURNS):
            await asyncio.sleep(0)
        self.skip(3600)
        await asyncio.Event().wait()

    def block(self) -> None:
        """Hangs like `hang`, on a thread, which cannot be cancelled: until the test is over."""
        self._loop.call_soon_threadsafe(self.skip, 3600)
        self._over.wait(PATIENCE_SECONDS)

    def skip(self, seconds: float) -> None:
        """Makes every timer of the next seconds due."""
        self._skipped += seconds

    def end(self) -> None:
        """Releases every blocked thread."""
        self._over.set()

    def _time(self) -> float:
        return self._real() + self._skipped
