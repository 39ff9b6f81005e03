import asyncio
import sys

import pytest

from signoff.cli.interrupts import run_interruptibly
from signoff.cli.output import Output
from signoff.cli.views import choose_view
from signoff.errors import HandlerFailed


async def leave() -> None:
    sys.exit(0)


async def in_a_task_of_its_own() -> None:
    await asyncio.gather(leave())


def test_a_task_that_ends_the_program_does_not_choose_its_exit_code() -> None:
    """It ends the loop past the engine, and its 0 would pass for a completed run."""
    with pytest.raises(HandlerFailed, match=r"sys\.exit"):
        run_interruptibly(in_a_task_of_its_own(), choose_view(Output()))


async def press_ctrl_c() -> None:
    raise KeyboardInterrupt


def test_a_workflow_that_raises_what_ctrl_c_does_is_told_so() -> None:
    """An empty line and the code of an interrupt would blame whoever sat at the keyboard."""
    with pytest.raises(HandlerFailed, match="raised KeyboardInterrupt"):
        run_interruptibly(press_ctrl_c(), choose_view(Output()))
