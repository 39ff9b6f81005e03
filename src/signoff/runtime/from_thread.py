"""Runs handlers in a thread of their own, and performs their requests on the event loop.

The journal, the writer and the runner are used on the event loop only. So a request that a
handler makes in another thread is performed on the loop while the thread waits.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

from signoff.core.context import Chance, EffectPort, StepContext

T = TypeVar("T")


async def on_thread(call: Callable[[], T]) -> T:
    """Runs a call in a thread that can be abandoned, and returns its result.

    Unlike a thread of the loop's pool, it does not keep the program from exiting.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def work() -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = context.run(call)
        except BaseException as raised:  # noqa: BLE001  # raised again where it is waited for
            error = raised
        # If the loop has ended, no one waits for the result.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_end, ended, result, error)

    threading.Thread(target=work, name="signoff-handler", daemon=True).start()
    return await ended


def _end(ended: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if ended.done():
        return
    if isinstance(error, StopIteration):
        # A future cannot carry it.
        ended.set_exception(RuntimeError("StopIteration was raised"))
    elif error is not None:
        ended.set_exception(error)
    else:
        ended.set_result(result)


class FromThread:
    """The effect port for a handler that runs in a thread."""

    def __init__(self, port: EffectPort, loop: asyncio.AbstractEventLoop) -> None:
        self._port = port
        self._loop = loop
        # These only build an awaitable. An ordinary function may return it, and it is then awaited
        # on the loop.
        self.perform, self.ask_checked = port.perform, port.ask_checked
        self.map, self.park = port.map, port.park

    def now(self, ctx: StepContext) -> float:
        """Returns the time, the same on every replay."""
        return self._on_loop(lambda: self._port.now(ctx))

    def random(self, ctx: StepContext) -> Chance:
        """Returns a random number generator that yields the same on every replay."""
        return self._on_loop(lambda: self._port.random(ctx))

    def progress(self, ctx: StepContext, message: str) -> None:
        """Passes a message on to the observers."""
        self._on_loop(lambda: self._port.progress(ctx, message))

    def may_block(self) -> None:
        """Prepares the engine for code that may block the event loop."""
        self._on_loop(self._port.may_block)

    def _on_loop(self, call: Callable[[], T]) -> T:
        if _loop_here() is self._loop:
            # The loop awaits what the function returned. Waiting for the loop here would deadlock.
            return call()
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(call())
            except BaseException as error:  # noqa: BLE001  # raised again where it was asked for
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return done.result()


def _loop_here() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
