"""Handlers in a thread of their own, and what they ask for there.

Journal, writer and runner live on the event loop and nowhere else, so whatever a handler
in another thread asks for at once is done there while the thread waits for it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

from signoff.core.checked import Checked, CheckedCall
from signoff.core.context import Chance, EffectPort, FanOutCall, StepContext
from signoff.core.effects import Effect

T = TypeVar("T")


async def on_thread(call: Callable[[], T]) -> T:
    """Returns what a call gives, made on a thread that can be left behind.

    Unlike those of the loop's own pool, such a thread does not keep the program from ending.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[T] = loop.create_future()
    context = copy_context()

    def work() -> None:
        given: Any = None
        error: BaseException | None = None
        try:
            given = context.run(call)
        except BaseException as raised:  # noqa: BLE001  # raised again where it is waited for
            error = raised
        # Where the loop has ended, nobody waits any more.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_end, ended, given, error)

    threading.Thread(target=work, name="signoff-handler", daemon=True).start()
    return await ended


def _end(ended: asyncio.Future[Any], given: Any, error: BaseException | None) -> None:
    if ended.done():
        return
    if isinstance(error, StopIteration):
        # A future cannot carry it.
        ended.set_exception(RuntimeError("StopIteration was raised"))
    elif error is not None:
        ended.set_exception(error)
    else:
        ended.set_result(given)


class FromThread:
    """A port to the outside for a handler that is not on the loop."""

    def __init__(self, port: EffectPort, loop: asyncio.AbstractEventLoop) -> None:
        self._port = port
        self._loop = loop

    def now(self, ctx: StepContext) -> float:
        """Returns the time, the same on every replay."""
        return self._on_loop(lambda: self._port.now(ctx))

    def random(self, ctx: StepContext) -> Chance:
        """Returns a source of chance that is the same on every replay."""
        return self._on_loop(lambda: self._port.random(ctx))

    def progress(self, ctx: StepContext, message: str) -> None:
        """Tells whoever watches."""
        self._on_loop(lambda: self._port.progress(ctx, message))

    def may_block(self) -> None:
        """Passes it on."""
        self._on_loop(self._port.may_block)

    # What has to be awaited is only built here; a plain function cannot await it.

    def perform(self, ctx: StepContext, effect: Effect) -> Awaitable[Any]:
        """Passes it on."""
        return self._port.perform(ctx, effect)

    def ask_checked(self, ctx: StepContext, call: CheckedCall[T]) -> Awaitable[Checked[T]]:
        """Passes it on."""
        return self._port.ask_checked(ctx, call)

    def map(self, ctx: StepContext, fan: FanOutCall) -> Awaitable[list[Any]]:
        """Passes it on."""
        return self._port.map(ctx, fan)

    def park(self, ctx: StepContext, until: float, key: str) -> Awaitable[None]:
        """Passes it on."""
        return self._port.park(ctx, until, key)

    def _on_loop(self, call: Callable[[], T]) -> T:
        if _loop_here() is self._loop:
            # What the function gave is awaited here, where waiting for the loop would never end.
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
