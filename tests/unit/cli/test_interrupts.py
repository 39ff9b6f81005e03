import asyncio
import signal
import sys
import threading

import pytest

from signoff.cli.driving import choose_view
from signoff.cli.interrupts import Interrupted, run_interruptibly
from signoff.cli.output import Output
from signoff.errors import HandlerFailed
from tests.patience import PATIENCE_SECONDS


async def leave() -> None:
    sys.exit(0)


async def in_a_task_of_its_own() -> None:
    await asyncio.gather(leave())


def test_a_task_that_ends_the_program_does_not_choose_its_exit_code() -> None:
    """It ends the event loop without the engine, and its 0 would mean a completed run."""
    with pytest.raises(HandlerFailed, match=r"sys\.exit"):
        run_interruptibly(in_a_task_of_its_own(), choose_view(Output()))


async def press_ctrl_c() -> None:
    raise KeyboardInterrupt


def test_a_workflow_that_raises_what_ctrl_c_does_is_told_so() -> None:
    """An empty line and the exit code of an interrupt would blame the user."""
    with pytest.raises(HandlerFailed, match="raised KeyboardInterrupt"):
        run_interruptibly(press_ctrl_c(), choose_view(Output()))


def test_a_stop_is_heard_while_the_loop_has_nothing_to_do() -> None:
    """A stop at the wrong moment took effect only when the agent answered, an hour later."""
    woken_by_something_else: list[str] = []

    def stop() -> None:
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    async def work() -> None:
        loop = asyncio.get_running_loop()
        loop.call_later(PATIENCE_SECONDS, woken_by_something_else.append, "a timer")
        # Another thread gets it, so it does not cut the loop's waiting short by itself.
        loop.call_soon(threading.Timer(0.1, stop).start)
        await asyncio.Event().wait()

    with pytest.raises(Interrupted):
        run_interruptibly(work(), choose_view(Output()))

    assert not woken_by_something_else
