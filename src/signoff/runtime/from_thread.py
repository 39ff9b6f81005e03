"""What a context asks for, when its handler runs in a thread of its own.

Journal, writer and runner live on the event loop and nowhere else, so whatever a handler
in another thread asks for at once is done there while the thread waits for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from signoff.core.context import Chance, EffectPort, Fan, StepContext
from signoff.core.effects import Effect

T = TypeVar("T")


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

    def map(self, ctx: StepContext, fan: Fan) -> Awaitable[list[Any]]:
        """Passes it on."""
        return self._port.map(ctx, fan)

    def park(self, ctx: StepContext, until: float, key: str) -> Awaitable[None]:
        """Passes it on."""
        return self._port.park(ctx, until, key)

    def _on_loop(self, call: Callable[[], T]) -> T:
        done: Future[T] = Future()

        def run() -> None:
            try:
                done.set_result(call())
            except BaseException as error:  # noqa: BLE001  # raised again where it was asked for
                done.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return done.result()
