"""Ctrl-C, twice: the first lets a run stop cleanly, the second quits at once.

Real signal handlers and not the event loop's: a handler that blocks the loop must not
keep a person from getting out.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import FrameType
from typing import Any, TypeVar

from signoff.cli import exits
from signoff.cli.views import View
from signoff.errors import HandlerFailed
from signoff.runtime.process import kill_family

T = TypeVar("T")

_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
    if hasattr(signal, name)
]


class Interrupted(Exception):  # noqa: N818  # an expected end, not a fault
    """A person, or the system, asked for the work to stop, and it has."""


def run_interruptibly(work: Coroutine[Any, Any, T], view: View) -> T:
    """Runs a coroutine to its end; raises `Interrupted` when it was stopped cleanly."""
    guard = _Guard(view)
    try:
        return asyncio.run(guard.run(work))
    except KeyboardInterrupt as error:
        if not guard.stands:
            raise
        # Ctrl-c comes to us as a signal: this one was raised by somebody.
        raise HandlerFailed(
            "the workflow raised KeyboardInterrupt, which would end the program without saving; "
            "change the handler to return or to raise another error, then resume the run"
        ) from error
    except SystemExit as error:
        # Raised in a task of a handler's own, it ends the loop past everybody; its code, often
        # 0, says nothing about the run.
        raise HandlerFailed(
            "the workflow called sys.exit(); change the handler to return or to raise another "
            "error, then resume the run"
        ) from error


class _Guard:
    """Stands between signals and some work: the first stops it, the second ends everything."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._asked = False
        self.stands = False
        """Whether signals have been caught, from some moment on."""

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine; raises `Interrupted` when a signal stopped it."""
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(work)

        def stop(_number: int, _frame: FrameType | None) -> None:
            if self._asked:
                quit_at_once(self._view)
            self._asked = True
            self._view.stopping()
            loop.call_soon_threadsafe(task.cancel)

        restore = _install(loop, stop)
        self.stands = True
        try:
            return await task
        except asyncio.CancelledError:
            if self._asked:
                raise Interrupted from None
            raise
        finally:
            restore()


def quit_at_once(view: View) -> None:
    """Ends this process now, and every program it started; runs can be resumed."""
    for timeline in view.timelines.values():
        for group in timeline.processes.values():
            with suppress(OSError, AttributeError):
                kill_family(group)
    view.let_go()
    names = "".join(
        f"; to continue it, run: signoff resume {run}" for run in list(view.timelines)[-1:]
    )
    os.write(2, f"\nquit at once{names}\n".encode())
    os._exit(exits.INTERRUPTED)


def _install(
    loop: asyncio.AbstractEventLoop, handler: Callable[[int, FrameType | None], None]
) -> Callable[[], None]:
    before = {}
    for number in _SIGNALS:
        old = signal.getsignal(number)
        # Only the main thread may do this; elsewhere the program around us decides.
        with suppress(ValueError, OSError, RuntimeError):
            # Python runs a handler when it next runs code of ours, and a loop that waits runs
            # none. A signal that the loop knows of wakes it, also one that comes just before it
            # begins to wait or that another thread receives.
            loop.add_signal_handler(number, lambda: None)
            signal.signal(number, handler)
            before[number] = old

    def restore() -> None:
        for number, old in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, old)

    return restore
