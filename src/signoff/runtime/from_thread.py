"""Runs handlers in a thread of their own, and performs their requests on the event loop.

The journal, the writer and the runner are used on the event loop only. So a request that a
handler makes in another thread is performed on the loop while the thread waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import TypeVar, cast
from weakref import WeakKeyDictionary

from signoff.core.chance import Chance
from signoff.core.context import EffectPort, StepContext
from signoff.core.spend import Spend
from signoff.idle_threads import in_idle_thread

T = TypeVar("T")


MOST_THREADS = 100
"""How many functions of a fan-out run at once; each needs a thread of its own."""

_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def thread_slots() -> asyncio.Semaphore:
    """Returns what limits the number of threads of this event loop."""
    loop = asyncio.get_running_loop()
    if loop not in _slots:
        _slots[loop] = asyncio.Semaphore(MOST_THREADS)
    return _slots[loop]


async def on_thread(call: Callable[[], T]) -> T:
    """Runs a call in a thread that can be abandoned, and returns its result.

    Unlike a thread of the loop's pool, it does not keep the program from exiting.
    """
    loop = asyncio.get_running_loop()
    # The thread hands its result directly to the loop: a future of `concurrent.futures` in between
    # would make the hand-over cost half as much again.
    done: asyncio.Future[T] = loop.create_future()
    in_idle_thread(partial(_report, loop, done, partial(copy_context().run, call)))
    return await done


def _report(
    loop: asyncio.AbstractEventLoop, done: asyncio.Future[T], call: Callable[[], T]
) -> None:
    """Makes a call in this thread and passes its result or error on to the event loop."""
    ended = _outcome(call)
    # A loop that is closed by now has abandoned the call.
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(_settle, done, *ended)


def for_thread(ctx: StepContext) -> StepContext:
    """Returns a context with which a handler can make requests in a thread of its own."""
    if ctx.port is None:
        return ctx
    return replace(ctx, port=FromThread(ctx.port, asyncio.get_running_loop()))


def _outcome(call: Callable[[], T]) -> tuple[T | None, BaseException | None]:
    """Makes a call and returns its result, or its error."""
    try:
        return call(), None
    except StopIteration:
        # An asyncio future cannot carry it, and the handler would wait forever.
        return None, RuntimeError("StopIteration was raised")
    except BaseException as error:  # noqa: BLE001  # raised again where the result is awaited
        return None, error


def _settle(
    done: Future[T] | asyncio.Future[T], result: T | None, error: BaseException | None
) -> None:
    """Passes on how a call ended, unless it was abandoned."""
    if done.done():
        return
    if error is not None:
        done.set_exception(error)
    else:
        done.set_result(cast("T", result))


class FromThread:
    """The effect port for a handler that runs in a thread."""

    def __init__(self, port: EffectPort, loop: asyncio.AbstractEventLoop) -> None:
        self._port = port
        self._loop = loop
        # These only build an awaitable. An ordinary function may return it, and it is then awaited
        # on the loop.
        self.perform, self.ask_checked = port.perform, port.ask_checked
        self.map, self.park = port.map, port.park
        self.before_plain_code = port.before_plain_code

    def was_requested(self, ctx: StepContext, key: str) -> bool:
        """Whether the journal has a request with this key: the handler is being replayed."""
        return self._on_loop(lambda: self._port.was_requested(ctx, key))

    def now(self, ctx: StepContext) -> float:
        """Returns the time, the same on every replay."""
        return self._on_loop(lambda: self._port.now(ctx))

    def random(self, ctx: StepContext) -> Chance:
        """Returns a random number generator that yields the same on every replay."""
        return self._on_loop(lambda: self._port.random(ctx))

    def spend(self) -> Spend:
        """Returns what the run has cost so far."""
        return self._on_loop(self._port.spend)

    def progress(self, ctx: StepContext, message: str) -> None:
        """Passes a message on to the observers."""
        self._on_loop(lambda: self._port.progress(ctx, message))

    def log(self, ctx: StepContext, text: str) -> None:
        """Records a line of the run's log."""
        self._on_loop(lambda: self._port.log(ctx, text))

    def _on_loop(self, call: Callable[[], T]) -> T:
        if loop_here() is self._loop:
            # The loop awaits what the function returned. Waiting for the loop here would deadlock.
            return call()
        done: Future[T] = Future()
        self._loop.call_soon_threadsafe(lambda: _settle(done, *_outcome(call)))
        return done.result()


def loop_here() -> asyncio.AbstractEventLoop | None:
    """Returns the event loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
