import asyncio
import sys

from signoff.core.effects import EffectId
from signoff.runtime.owner import birth_of
from signoff.runtime.ports import Call
from signoff.runtime.process import MARK, call_mark, end_orphans, end_process, mark_of, marked

DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        time.sleep(600)
    os._exit(0)
"""


async def daemon(mark: str) -> int:
    """Starts a program that forks a process into a session of its own, and leaves."""
    starter = await asyncio.create_subprocess_exec(
        sys.executable,
        "-IS",
        "-c",
        DAEMON,
        env={MARK: mark},
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    assert starter.stdout is not None
    pid = int(await starter.stdout.readline())
    await end_process({"pid": starter.pid, "born": birth_of(starter.pid) or ""})
    assert birth_of(pid) is not None
    return pid


async def test_a_daemon_is_found_by_its_mark_and_ended() -> None:
    """It left its group and its session; nothing else tells that it is ours."""
    pid = await daemon("test-mark-1")

    await end_orphans("test-mark-1")

    assert birth_of(pid) is None


async def test_what_a_dead_runner_recorded_is_enough_to_end_its_daemons() -> None:
    """Otherwise a run resumed after a crash would work while its old agent still does."""
    pid = await daemon("test-mark-2")

    await end_process({"pid": 2**22 + 1, "born": "1", "mark": "test-mark-2"})

    assert birth_of(pid) is None


def test_an_unused_mark_finds_no_process() -> None:
    """A needle that matches everything would end every process of the user."""
    assert marked("no-such-mark") == []
    assert marked("") == []


def test_calls_of_no_run_do_not_share_a_mark() -> None:
    """The first one to end would take the other's program with it."""
    call = Call("", EffectId("ask#1"))

    assert call_mark(call) != call_mark(call)


def test_the_marks_of_a_call_of_a_run_begin_alike_in_every_process() -> None:
    """A program that a dead runner has left behind is found by that.

    The whole mark is the runner's own: one that has lost its run must end only what it started.
    """
    call = Call("one", EffectId("ask#1"), run_key="seed")
    first, again, other = (
        call_mark(each) for each in (call, call._replace(attempt=2), call._replace(run_key="other"))
    )

    effect = mark_of("seed", call.step, call.visit, call.step_attempt, call.effect)
    assert [each.partition(".")[0] == effect for each in (first, again, other)] == [
        True,
        True,
        False,
    ]
    assert first != again
