import asyncio
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from signoff.core.errors import HandlerFailed
from signoff.runtime.owner import birth_of
from signoff.surfaces.cli.driving import choose_view
from signoff.surfaces.cli.output import Output
from signoff.surfaces.cli.views import Interrupted, run_interruptibly
from tests.patience import PATIENCE_SECONDS, wait_until


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


def test_a_signal_is_caught_until_the_loop_has_ended() -> None:
    """The end of the loop ends programs; a second signal would keep it from that."""
    before, during = signal.getsignal(signal.SIGTERM), []

    async def program() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            during.append(signal.getsignal(signal.SIGTERM))

    async def work() -> asyncio.Task[None]:
        running = asyncio.ensure_future(program())
        await asyncio.sleep(0)
        return running

    run_interruptibly(work(), choose_view(Output()))

    assert during
    assert before not in during
    assert signal.getsignal(signal.SIGTERM) == before


QUITS_DURING_AN_IMPORT = """
import asyncio, os, signal, sys, time
from signoff.surfaces.cli.views import run_interruptibly
from signoff.surfaces.cli.views import View
from signoff.runtime.process import run_process

HOLD = "trap '' TERM INT; echo $$ > pid; sleep 600"


class SecondCtrlC:
    def find_spec(self, name, path, target=None):
        # Part of psutil has been executed, the rest has not.
        if name == "psutil._common":
            os.kill(os.getpid(), signal.SIGINT)


async def work():
    running = asyncio.ensure_future(run_process(["sh", "-c", HOLD]))
    for _ in range(2):
        await asyncio.sleep(0)
    # The program is at work, and the loop has not heard yet that it was started.
    while not (os.path.exists("pid") and open("pid").read()):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
    await running


assert "psutil" not in sys.modules
sys.meta_path.insert(0, SecondCtrlC())
run_interruptibly(work(), View())
"""


def test_a_second_ctrl_c_leaves_no_program_running_however_early_it_comes(tmp_path: Path) -> None:
    """One that came during the search for processes failed, and was not heard."""
    program = [sys.executable, "-c", QUITS_DURING_AN_IMPORT]

    ended = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (ended.returncode, ended.stderr.strip()) == (130, "quit at once")
    wait_until(lambda: birth_of(int((tmp_path / "pid").read_text())) is None)
