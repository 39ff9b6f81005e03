import asyncio
import os
import signal
import sys

import pytest

from signoff.core.errors import CommandFailed
from signoff.runtime.owner import birth_of
from signoff.runtime.process import run_process
from tests.patience import PATIENCE_SECONDS


def python(code: str) -> list[str]:
    return [sys.executable, "-IS", "-c", code]


async def test_output_is_handed_on_as_it_comes() -> None:
    """Live views would stay empty until the end."""
    heard: list[bytes] = []

    result = await run_process(python("print('one'); print('two')"), out=heard.append)

    assert b"".join(heard) == b"one\ntwo\n"
    assert result.stdout == "one\ntwo\n"


async def test_a_listener_that_has_heard_enough_ends_the_program() -> None:
    """Output without end would be collected until the memory is full."""
    pids: list[int] = []

    def enough(chunk: bytes) -> None:
        raise CommandFailed("enough")

    with pytest.raises(CommandFailed, match="enough"):
        await run_process(
            python("while True: print('again', flush=True)"),
            out=enough,
            started=lambda process: pids.append(process["pid"]),
        )

    assert birth_of(pids[0]) is None


UNBURIED = """
import os, time
leader = os.getpid()
if os.fork() == 0:
    os.setpgid(0, 0)
    child = os.fork()
    if child == 0:
        os.setpgid(0, leader)
        print(os.getppid(), flush=True)
    time.sleep(600)
time.sleep(600)
"""


async def test_a_zombie_does_not_hold_up_the_end() -> None:
    """In a container without an init process, every cancelled call would take ten seconds."""
    heard: asyncio.Queue[bytes] = asyncio.Queue()
    # A grace period that no machine is slow enough to reach.
    program = run_process(python(UNBURIED), out=heard.put_nowait, grace_seconds=10_000)
    running = asyncio.create_task(program)
    careless_parent = int(await heard.get())

    running.cancel()
    ended, _ = await asyncio.wait({running}, timeout=PATIENCE_SECONDS)

    os.kill(careless_parent, signal.SIGKILL)
    assert running in ended
    assert running.cancelled()
