"""Handles ctrl-c: the first stops a run cleanly, the second exits at once.

These are real signal handlers, not the event loop's: a workflow that blocks the loop must
not keep the user from stopping the program.
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
from signoff.runtime.process import kill_children

T = TypeVar("T")

_SIGNALS = [
    getattr(signal, name)
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
    if hasattr(signal, name)
]


class Interrupted(Exception):  # noqa: N818  # an expected end, not an error
    """A signal stopped the work cleanly."""


def run_interruptibly(work: Coroutine[Any, Any, T], view: View) -> T:
    """Runs a coroutine to its end; raises `Interrupted` when it was stopped cleanly."""
    guard = _Guard(view)
    try:
        try:
            return asyncio.run(guard.run(work))
        finally:
            # Only now: the end of the loop ends programs, and a signal must not keep it from that.
            guard.restore()
    except KeyboardInterrupt as error:
        if not guard.active:
            raise
        # Ctrl-c arrives as a signal while the guard is active, so a handler raised this one.
        raise HandlerFailed(
            "the workflow raised KeyboardInterrupt, which would end the program without saving; "
            "change the handler to return or to raise another error, then resume the run"
        ) from error
    except SystemExit as error:
        # Raised in a task that a handler started, it ends the event loop directly. Its code,
        # often 0, says nothing about the run.
        raise HandlerFailed(
            "the workflow called sys.exit(); change the handler to return or to raise another "
            "error, then resume the run"
        ) from error


class _Guard:
    """Catches signals during some work: the first cancels it, the second ends the process."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._asked = False
        self._before: dict[int, Any] = {}
        self.active = False
        """Whether signal handlers were installed."""

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine; raises `Interrupted` when a signal stopped it."""
        loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(work)

        def stop(_number: int, _frame: FrameType | None) -> None:
            if self._asked:
                quit_at_once(self._view)
            self._asked = True
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(task.cancel)
            # This may interrupt a print to the same stream, which cannot be entered twice.
            with suppress(RuntimeError, OSError):
                self._view.stopping()

        self._before = _install(loop, stop)
        self.active = True
        try:
            return await task
        except asyncio.CancelledError:
            if self._asked:
                raise Interrupted from None
            raise

    def restore(self) -> None:
        """Puts the handlers of before back."""
        for number, handler in self._before.items():
            signal.signal(number, handler)


def quit_at_once(view: View) -> None:
    """Ends this process and every program it started; its runs can be resumed."""
    for number in _SIGNALS:
        # A key that is held down sends more of them, which would interrupt this and start over.
        signal.signal(number, lambda _number, _frame: None)
    names = "".join(
        f"; to continue it, run: signoff resume {run}" for run in list(view.timelines)[-1:]
    )
    exit_at_once(view, f"\nquit at once{names}\n", exits.INTERRUPTED)


def exit_at_once(view: View, message: str, code: int) -> None:
    """Ends this process and every program it started, with a last message; on any thread."""
    try:
        # Not by what the journal knows of them: a program that was just started is not in it yet.
        kill_children()
        view.release_terminal()
        os.write(2, message.encode())
    finally:
        os._exit(code)


def _install(
    loop: asyncio.AbstractEventLoop, handler: Callable[[int, FrameType | None], None]
) -> dict[int, Any]:
    """Installs a handler for every signal, and returns those of before.

    The loop forgets that it hears them when it is closed.
    """
    before: dict[int, Any] = {}
    for number in _SIGNALS:
        old = signal.getsignal(number)
        # Only the main thread may install handlers; in another one, the caller handles signals.
        with suppress(ValueError, OSError, RuntimeError):
            # Python runs a signal handler only between bytecodes, and a waiting event loop
            # executes none. Registering the signal with the loop makes it wake up, even if the
            # signal arrives just before it starts to wait or in another thread.
            loop.add_signal_handler(number, lambda: None)
            signal.signal(number, handler)
            before[number] = old
    return before
