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

T = TypeVar("T")

_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class Interrupted(Exception):  # noqa: N818  # an expected end, not a fault
    """A person, or the system, asked for the work to stop, and it has."""


def run_interruptibly(work: Coroutine[Any, Any, T], view: View) -> T:
    """Runs a coroutine to its end; raises `Interrupted` when it was stopped cleanly."""
    try:
        return asyncio.run(_guarded(work, view))
    except SystemExit as error:
        # Raised in a task of a handler's own, it ends the loop past everybody; its code, often
        # 0, says nothing about the run.
        raise HandlerFailed(
            "the workflow ended the program with sys.exit(); let its handlers return or raise "
            "instead, then resume the run"
        ) from error


async def _guarded(work: Coroutine[Any, Any, T], view: View) -> T:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    asked = False

    def stop(_number: int, _frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            quit_at_once(view)
        asked = True
        view.stopping()
        loop.call_soon_threadsafe(task.cancel)

    restore = _install(stop)
    try:
        return await task
    except asyncio.CancelledError:
        if asked:
            raise Interrupted from None
        raise
    finally:
        restore()


def quit_at_once(view: View) -> None:
    """Ends this process now, and every program it started; runs can be resumed."""
    for timeline in view.timelines.values():
        for group in timeline.processes.values():
            with suppress(OSError, AttributeError):
                os.killpg(group, signal.SIGKILL)
    view.let_go()
    names = "".join(f"; go on: signoff resume {run}" for run in list(view.timelines)[-1:])
    os.write(2, f"\nquit at once{names}\n".encode())
    os._exit(exits.INTERRUPTED)


def _install(handler: Callable[[int, FrameType | None], None]) -> Callable[[], None]:
    before = {}
    for number in _SIGNALS:
        # Only the main thread may do this; elsewhere the program around us decides.
        with suppress(ValueError, OSError):
            before[number] = signal.signal(number, handler)

    def restore() -> None:
        for number, old in before.items():
            signal.signal(number, old)

    return restore
