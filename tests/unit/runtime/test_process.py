import asyncio
import gc
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.errors import CommandFailed, LeaseLost
from signoff.core.outcome import Outcome
from signoff.core.requests import Question
from signoff.runtime.owner import birth_of
from signoff.runtime.process import KEPT_BYTES, end_process, kill_family, run_process
from tests.patience import PATIENCE_SECONDS, until, wait_until, written
from tests.unit.runtime.engine_fixture import OK, EngineFixture, Work, one_step

FAMILY = """
import os, subprocess, sys, time
child = "import os, sys, time; print(os.getpid(), file=open(sys.argv[1], 'w', 1)); time.sleep(600)"
grandchild = f"import subprocess as s, sys; s.run([sys.executable, '-c', {child!r}, sys.argv[1]])"
folder = sys.argv[1]
subprocess.Popen([sys.executable, "-c", child, folder + "/a"])
subprocess.Popen([sys.executable, "-c", grandchild, folder + "/b"])
print(os.getpid(), file=open(folder + "/parent", "w"), flush=True)
time.sleep(600)
"""
"""A program with a child and a grandchild, which all write their numbers down."""

STUBBORN = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), file=open(sys.argv[1] + "/parent", "w"), flush=True)
time.sleep(600)
"""


DEFIANT = """
import os, signal, sys, time
def note(name): print(os.getpid(), file=open(f"{sys.argv[1]}/{name}", "w"), flush=True)
signal.signal(signal.SIGTERM, lambda *_: note("asked"))
note("parent")
while True: time.sleep(600)
"""
"""A program that writes down that it was asked to end, and does not end."""


def python(script: str, *args: str) -> list[str]:
    return [sys.executable, "-c", script, *args]


Numbers = Callable[..., Awaitable[list[int]]]


async def numbers(directory: Path, *names: str) -> list[int]:
    """Returns the process numbers written into files, once they are all there."""
    files = [directory / name for name in names]
    await until(lambda: all(map(written, files)), "the start")
    return [int(written(file)) for file in files]


async def numbers_at_start(directory: Path, *names: str) -> list[int]:
    """Returns the same while the event loop does not know yet that the program was started."""
    # One turn begins to run it and one forks; from then on this blocks the loop.
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    files = [directory / name for name in names]
    wait_until(lambda: all(map(written, files)), "the start")
    return [int(written(file)) for file in files]


# What comes back


async def test_a_program_gives_back_its_code_and_what_it_printed() -> None:
    """Handlers look at all three."""
    script = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"

    result = await run_process(python(script))

    assert (result.code, result.stdout, result.stderr) == (3, "out\n", "err\n")
    assert not result.ok


async def test_a_program_that_does_not_read_is_not_waited_for() -> None:
    """It has a right not to; its exit code tells."""
    result = await run_process(python("pass"), stdin="x" * 1_000_000)

    assert result.code == 0


async def test_a_program_without_input_sees_an_empty_one() -> None:
    """One that reads from the terminal by mistake would hang for ever."""
    result = await run_process(python("import sys; print(repr(sys.stdin.read()))"), seconds=10)

    assert result.stdout == "''\n"


async def test_a_program_runs_in_its_folder_with_its_variables(tmp_path: Path) -> None:
    """It sees the variables it gets, and no others."""
    script = "import os; print(os.listdir(), os.environ['EXTRA'], 'PATH' in os.environ)"
    (tmp_path / "here").touch()

    result = await run_process(python(script), cwd=str(tmp_path), env={"EXTRA": "yes"})

    assert result.stdout == "['here'] yes False\n"


async def test_endless_output_is_limited() -> None:
    """Ten megabytes of log must not become ten megabytes of journal; both ends matter most."""
    script = "import sys; sys.stdout.write('a' * 5_000_000 + 'b' * 5_000_000)"

    result = await run_process(python(script))

    assert len(result.stdout) < KEPT_BYTES + 100
    assert result.stdout.startswith("aaa")
    assert result.stdout.endswith("bbb")
    assert f"[... {10_000_000 - KEPT_BYTES} bytes left out ...]" in result.stdout


async def test_output_that_is_not_text_is_decoded_as_far_as_possible() -> None:
    """A program that prints an image must not break the run."""
    script = "import sys; sys.stdout.buffer.write(b'a\\xff\\xfe\\x00b')"

    result = await run_process(python(script))

    assert result.stdout == "a\ufffd\ufffd\x00b"


# What cannot be started


@pytest.mark.parametrize(
    ("argv", "problem"),
    [(["/"], "/"), (["ls", "a\0b"], "null|ls"), (["no-such-program"], "was not found.*PATH")],
)
async def test_what_cannot_be_run_says_so_in_one_line(argv: list[str], problem: str) -> None:
    """A directory, a hostile argument, or a name to fix or a program to install."""
    with pytest.raises(CommandFailed, match=problem) as failed:
        await run_process(argv)

    assert "\n" not in str(failed.value)


# No orphans


async def test_a_program_out_of_time_is_gone_with_all_its_children(tmp_path: Path) -> None:
    """Left behind, they would keep changing files of a run that has continued."""
    family: list[str] = []
    for seconds in (1, 5, 25):
        # A busy machine may take longer than the first time to start them all.
        if len(family) < 3:
            folder = tmp_path / str(seconds)
            folder.mkdir()
            with pytest.raises(CommandFailed, match=f"took longer than {seconds} seconds"):
                await run_process(python(FAMILY, str(folder)), seconds=seconds)
            family = [text for path in folder.iterdir() if (text := path.read_text())]

    assert [birth_of(int(pid)) for pid in family] == [None] * 3


async def test_a_cancelled_program_is_gone_with_all_its_children(tmp_path: Path) -> None:
    """Before the run says it has stopped."""
    running = asyncio.create_task(run_process(python(FAMILY, str(tmp_path))))
    family = await numbers(tmp_path, "parent", "a", "b")

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert [birth_of(pid) for pid in family] == [None] * 3


async def test_a_program_cancelled_while_it_starts_is_gone_with_all_its_children(
    tmp_path: Path,
) -> None:
    """On a busy machine it may be at work already when we hear that it was started."""
    script = 'sleep 600 & echo $! > "$0/child"; echo $$ > "$0/parent"; wait'
    running = asyncio.create_task(run_process(["sh", "-c", script, str(tmp_path)]))
    family = await numbers_at_start(tmp_path, "parent", "child")

    running.cancel()
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(asyncio.CancelledError):
            await running

    assert [birth_of(pid) for pid in family] == [None] * 2


async def test_children_a_program_leaves_behind_end_with_it(tmp_path: Path) -> None:
    """They are not waited for: the program has ended."""
    script = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {STUBBORN.replace("SIG_IGN", "SIG_DFL")!r}, sys.argv[1]])
import os, time
while not os.path.exists(sys.argv[1] + "/parent"): time.sleep(0.01)
print("done")
"""
    began = time.monotonic()

    result = await run_process(python(script, str(tmp_path)))

    (child,) = await numbers(tmp_path, "parent")
    assert result.stdout == "done\n"
    assert birth_of(child) is None
    assert time.monotonic() - began < PATIENCE_SECONDS


async def test_a_program_that_will_not_end_is_killed(tmp_path: Path) -> None:
    """Some programs ignore SIGTERM."""
    program = run_process(python(STUBBORN, str(tmp_path)), grace_seconds=0.1)
    running = asyncio.create_task(program)
    (pid,) = await numbers(tmp_path, "parent")

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert birth_of(pid) is None


unclosed_pipes = pytest.mark.filterwarnings("ignore:(unclosed|subprocess):ResourceWarning")
"""For programs that are cancelled while they start: asyncio does not close their pipes itself."""


@unclosed_pipes
@pytest.mark.parametrize("pids", [numbers, numbers_at_start])
async def test_a_loop_that_ends_leaves_nothing_behind_either(tmp_path: Path, pids: Numbers) -> None:
    """A second Ctrl-C is the usual answer to a program that does not stop at the first."""
    running = asyncio.create_task(run_process(python(DEFIANT, str(tmp_path))))
    (pid,) = await pids(tmp_path, "parent")

    running.cancel()
    await numbers(tmp_path, "asked")
    await _end_loop()

    await _until_reaped(pid)


@unclosed_pipes
@pytest.mark.parametrize("pids", [numbers, numbers_at_start])
@pytest.mark.parametrize("turns", range(1, 5))
async def test_a_loop_that_ends_just_after_a_cancellation_leaves_nothing_behind(
    tmp_path: Path, pids: Numbers, turns: int
) -> None:
    """What would have ended the program was cancelled before it began."""
    running = asyncio.create_task(run_process(python(DEFIANT, str(tmp_path))))
    (pid,) = await pids(tmp_path, "parent")

    running.cancel()
    for _ in range(turns):
        await asyncio.sleep(0)
    await _end_loop()

    await _until_reaped(pid)


async def _end_loop() -> None:
    """Cancels every other task, as a loop that ends does."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.wait(others)
    others.clear()
    gc.collect()


async def _until_reaped(pid: int) -> None:
    """Waits until a program is gone and asyncio has noticed; Python warns about any other."""
    await until(lambda: birth_of(pid) is None, "the end")
    await until(lambda: not any(map(_waits_for_program, threading.enumerate())), "its thread's end")
    await asyncio.sleep(0)
    gc.collect()


def _waits_for_program(thread: threading.Thread) -> bool:
    return thread.name.startswith("waitpid-")


async def test_a_program_that_cannot_be_recorded_is_not_left_running(tmp_path: Path) -> None:
    """The run was lost in the moment the program started."""
    started: list[int] = []

    def lost(process: dict[str, Any]) -> None:
        started.append(process["pid"])
        raise LeaseLost

    with pytest.raises(LeaseLost):
        await run_process(python(FAMILY, str(tmp_path)), started=lost)

    assert birth_of(started[0]) is None


DETACHED = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), file=open(sys.argv[1] + "/detached", "w"), flush=True)
        os.execve(sys.executable, [sys.executable, "-IS", "-c", "import time; time.sleep(600)"], {})
    os._exit(0)
os.wait()
print(os.getpid(), file=open(sys.argv[1] + "/parent", "w"), flush=True)
time.sleep(600)
"""
"""A program that starts a daemon: another session, another parent, an empty environment."""

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs a child subreaper")


@linux
@pytest.mark.parametrize("pids", [numbers, numbers_at_start])
async def test_a_daemon_of_a_cancelled_program_is_gone_too(tmp_path: Path, pids: Numbers) -> None:
    """`setsid` is one word in a shell script; a cancelled run must not work on because of it."""
    running = asyncio.create_task(run_process(python(DETACHED, str(tmp_path))))
    family = await pids(tmp_path, "parent", "detached")

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert [birth_of(pid) for pid in family] == [None] * 2


@linux
async def test_a_daemon_of_a_program_that_a_dead_runner_left_is_gone_too(tmp_path: Path) -> None:
    """The resumed run would work at the same time."""
    recorded: list[dict[str, Any]] = []
    argv = python(DETACHED, str(tmp_path))
    running = asyncio.create_task(run_process(argv, started=recorded.append))
    family = await numbers(tmp_path, "parent", "detached")
    await until(lambda: recorded, "the record")

    await end_process(recorded[0])

    assert [birth_of(pid) for pid in family] == [None] * 2
    await running


async def test_what_a_shell_script_detached_is_gone_with_the_cancelled_script(
    tmp_path: Path,
) -> None:
    """What left its session is still known by its mark, on every system."""
    script = 'setsid sh -c \'echo $$ > "$0/detached"; exec sleep 60\' "$0" & sleep 60'
    argv = ["sh", "-c", script, str(tmp_path)]
    running = asyncio.create_task(run_process(argv, mark="test-mark-3"))
    (pid,) = await numbers(tmp_path, "detached")

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert birth_of(pid) is None


async def test_processes_of_others_are_left_alone(tmp_path: Path) -> None:
    """A call that is stopped ends its own programs, and nothing else on the machine."""
    other = asyncio.create_task(run_process(python(STUBBORN, str(tmp_path)), mark="other"))
    (pid,) = await numbers(tmp_path, "parent")
    (tmp_path / "ours").mkdir()
    argv = python(STUBBORN.replace("SIG_IGN", "SIG_DFL"), str(tmp_path / "ours"))
    ours = asyncio.create_task(run_process(argv, mark="ours"))
    await numbers(tmp_path / "ours", "parent")

    ours.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ours

    assert birth_of(pid) is not None
    kill_family(pid)
    await other


async def test_a_command_that_fails_is_a_result_and_runs_once_however_often_its_handler_does(
    bench: EngineFixture, tmp_path: Path
) -> None:
    """Failing tests are a result, and it is recorded like any reply."""
    log = tmp_path / "log"

    async def work(ctx: StepContext) -> Work:
        script = "import sys; open(sys.argv[1], 'a').write('ran '); sys.exit(1)"
        result = await ctx.command(python(script, str(log)))
        await ctx.wait(Question("Good?"))
        return (OK if result.ok else Outcome.FAIL), {"code": result.code}

    workflow = one_step(work, next={OK: None, Outcome.FAIL: None})
    result = await bench.answered(workflow)

    assert (result.outcome, result.state) == (Outcome.FAIL, {"code": 1})
    assert log.read_text() == "ran "


# In a run


async def test_a_command_runs_once_however_often_its_handler_does(
    bench: EngineFixture, tmp_path: Path
) -> None:
    """Its result is recorded like any reply."""
    log = tmp_path / "log"

    async def work(ctx: StepContext) -> Work:
        script = "import sys; open(sys.argv[1], 'a').write('ran ')"
        await ctx.command(python(script, str(log)))
        await ctx.wait(Question("Good?"))
        return OK, {}

    workflow = one_step(work)
    await bench.start(workflow)
    bench.answer("yes")

    assert (await bench.resume(workflow)).ok
    assert log.read_text() == "ran "


ENDS_EARLY = """
import asyncio
from signoff import Outcome, StepDef, Workflow
from signoff.runtime.engine import Engine
from signoff.store.sqlite import MemoryStore

async def work(ctx):
    await ctx.command(["true"])
    return Outcome.OK, {}

async def main(turns, more):
    flow = Workflow("early", StepDef("only", handler=work, next={Outcome.OK: None}))
    run = asyncio.ensure_future(Engine(MemoryStore()).start(flow))
    for _ in range(turns):
        await asyncio.sleep(0)
    if more:
        run.cancel()
    for _ in range(more):
        await asyncio.sleep(0)

for turns in range(3, 11):
    for more in range(5):
        asyncio.run(main(turns, more))
"""


def test_a_program_that_ends_while_it_starts_another_does_end() -> None:
    """Cancelled between fork and pipes, asyncio waits for ever for a child it has killed."""
    subprocess.run(
        python(ENDS_EARLY), check=True, timeout=PATIENCE_SECONDS, stderr=subprocess.DEVNULL
    )
