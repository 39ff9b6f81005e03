"""Runs handlers in a thread of their own, and performs their requests on the event loop.

The journal, the writer and the runner are used on the event loop only. So a request that a
handler makes in another thread is performed on the loop while the thread waits.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from queue import Empty, SimpleQueue
from typing import TypeVar
from weakref import WeakKeyDictionary

from signoff.core.chance import Chance
from signoff.core.context import EffectPort, StepContext
from signoff.core.spend import Spend

T = TypeVar("T")


MOST_THREADS = 100
"""How many functions of a fan-out run at once; each needs a thread of its own."""

IDLE_SECONDS = 5.0
"""How long a thread waits for another call before it ends."""

_Queue = SimpleQueue[Callable[[], None]]
_idle: list[_Queue] = []
"""The threads that have nothing to do, each by the queue of its calls."""
_fork_hooks: list[object] = []

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
    done: Future[T] = Future()
    # A future that counts as running cannot be cancelled, so the thread can always set its result.
    done.set_running_or_notify_cancel()
    work = partial(_complete, done, partial(copy_context().run, call))
    _start(work)
    return await asyncio.wrap_future(done)


def _start(work: Callable[[], None]) -> None:
    """Runs a call in a thread that has nothing to do, or in a new one.

    Starting a thread holds up the event loop until the thread runs, which takes longer than most
    functions.
    """
    if not _fork_hooks:
        # A forked process has none of these threads.
        os.register_at_fork(after_in_child=_idle.clear)
        _fork_hooks.append(_idle)
    try:
        queue = _idle.pop()
    except IndexError:
        queue = SimpleQueue()
        threading.Thread(target=_serve, args=(queue,), name="signoff-handler", daemon=True).start()
    queue.put(work)


def _serve(queue: _Queue) -> None:
    """Runs calls one after the other, until there is none for a while."""
    while True:
        try:
            queue.get(timeout=IDLE_SECONDS)()
        except Empty:
            try:
                _idle.remove(queue)
            except ValueError:
                continue  # It was taken this moment, so there is a call on its way.
            return
        _idle.append(queue)


def for_thread(ctx: StepContext) -> StepContext:
    """Returns a context with which a handler can make requests in a thread of its own."""
    if ctx.port is None:
        return ctx
    return replace(ctx, port=FromThread(ctx.port, asyncio.get_running_loop()))


def _complete(done: Future[T], call: Callable[[], T]) -> None:
    """Makes a call and stores its result or error in a future."""
    try:
        done.set_result(call())
    except StopIteration:
        # An asyncio future cannot carry it, and the handler would wait forever.
        done.set_exception(RuntimeError("StopIteration was raised"))
    except BaseException as error:  # noqa: BLE001  # raised again where the result is awaited
        done.set_exception(error)


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
        self._loop.call_soon_threadsafe(_complete, done, call)
        return done.result()


def loop_here() -> asyncio.AbstractEventLoop | None:
    """Returns the event loop that runs in this thread, if one does."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
