"""An event loop on which waiting takes no time, in a fixed order.

Simulated agents take as long as real ones, so which call sees which cached prompt is realistic.
When all tasks wait, the loop's clock jumps to the next moment at which one of them continues.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def run_in_virtual_time(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine to its end on such a loop."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


class VirtualLoop(asyncio.SelectorEventLoop):
    """Its time passes only while all tasks wait."""

    def __init__(self) -> None:
        self._virtual_seconds = 0.0
        super().__init__(_Selector(self._advance))

    def time(self) -> float:
        """Returns the virtual time in seconds."""
        return self._virtual_seconds

    def run_in_executor(
        self,
        executor: Executor | None,  # noqa: ARG002  # the base class prescribes it
        func: Callable[[*Ts], T],
        *args: *Ts,
    ) -> asyncio.Future[T]:
        """Calls the function at once: a thread takes real time, and virtual time would pass it."""
        future: asyncio.Future[T] = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  # it is raised where the future is awaited
            future.set_exception(error)
        return future

    def _advance(self, seconds: float) -> None:
        self._virtual_seconds += seconds


class _Selector(selectors.DefaultSelector):
    def __init__(self, advance: Callable[[float], None]) -> None:
        super().__init__()
        self._skip = advance

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        events = super().select(0)
        if not events:
            self._skip(timeout)
        return events
