import os
import signal
import subprocess

import psutil  # type: ignore[import-untyped]  # it brings no types
import pytest

from tests.acceptance.cli_project import PROGRAM, CliProject, is_alive
from tests.acceptance.workflows import DEFIES, HOLDS
from tests.patience import wait_until


@pytest.fixture
def holding(project: CliProject) -> CliProject:
    project.write("holds.py", HOLDS)
    return project


def test_a_killed_run_resumes_without_repeating_finished_work(holding: CliProject) -> None:
    """This is the main promise of signoff."""
    process = holding.start("run", "holds.py", "--name", "one")
    orphan = int(holding.wait_for("pid"))
    process.kill()
    process.wait()
    (holding.folder / "pid").unlink()
    resumed = holding.start("resume", "one")
    second = int(holding.wait_for("pid"))

    assert second != orphan
    assert not is_alive(orphan)
    holding.write("go", "")
    assert resumed.wait() == 0
    assert (holding.folder / "calls.txt").read_text() == "first\n"


def test_a_run_whose_process_died_is_shown_as_interrupted(holding: CliProject) -> None:
    """If it were shown as running, no user would think of resuming it."""
    process = holding.start("run", "holds.py", "--name", "one")
    holding.wait_for("pid")
    process.kill()
    process.wait()

    text = holding.signoff("show").stdout
    report = holding.json("show")
    listed = holding.signoff("runs", "--status", "interrupted").stdout
    followed = holding.signoff("logs", "-f", "one")

    assert text.splitlines()[0] == "● interrupted  one: its process stopped"
    assert "to continue it, run: signoff resume one" in text
    assert (report["status"], report["exit_code"]) == ("interrupted", 130)
    assert "its process stopped" in listed
    assert followed.returncode == 0, followed.stderr
    assert followed.stdout.endswith(
        "interrupted: its process stopped; to continue it, run: signoff resume one\n"
    )


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP],
    ids=lambda each: each.name,
)
def test_a_signal_stops_the_run_cleanly_and_it_can_be_resumed(
    holding: CliProject, number: signal.Signals
) -> None:
    """Users press ctrl-c; containers send SIGTERM or SIGQUIT when they are shut down."""
    process = holding.start("run", "holds.py", "--name", "one")
    child = int(holding.wait_for("pid"))

    process.send_signal(number)
    out, err = process.communicate()

    assert process.returncode == 130, err
    assert "signoff resume one" in out
    assert not is_alive(child)
    assert holding.json("show", "one")["status"] == "interrupted"
    holding.write("go", "")
    assert holding.signoff("resume", "one").returncode == 0
    assert (holding.folder / "calls.txt").read_text() == "first\n"


def test_a_second_ctrl_c_quits_at_once_and_leaves_no_orphan(holding: CliProject) -> None:
    """The program ignores SIGTERM, and the user does not want to wait for it."""
    holding.write("holds.py", DEFIES)
    process = holding.start("run", "holds.py", "--name", "one")
    child = int(holding.wait_for("pid"))

    process.send_signal(signal.SIGINT)
    wait_until(lambda: "stopping" in read_some(process.stderr))
    process.send_signal(signal.SIGINT)
    process.wait()

    assert process.returncode == 130
    wait_until(lambda: not is_alive(child))
    holding.write("go", "")
    assert holding.signoff("resume", "one").returncode == 0


READ_ONLY = """
mount --bind "$PWD" "$PWD" && mount -o remount,ro,bind "$PWD" || exit 99
cd "$PWD"
"""
READS = ("runs", "show one", "logs one", "inbox", "inbox 1", "export json one", "export html one")


def read_only(project: CliProject, *commands: str) -> subprocess.CompletedProcess[str]:
    """Runs commands while the project is on a read-only mount; chmod stops no root."""
    script = READ_ONLY + "".join(f"{PROGRAM} {each} || exit $?\n" for each in commands)
    try:
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script],
            cwd=project.folder,
            env=project.environment,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("unshare is not installed")
    if done.returncode == 99 or "unshare failed" in done.stderr:
        pytest.skip("this user may not mount")
    return done


def test_a_read_only_file_system_can_be_read(holding: CliProject) -> None:
    """A snapshot, a full disk that was remounted, or a container that only reports."""
    holding.write("asks.yaml", "type: asks\nsteps: [{name: ask, human_gate: {prompt: Well?, "
                               "options: [{label: Go, ends: completed}]}}]\n")  # fmt: skip
    assert holding.signoff("run", "asks.yaml", "--name", "one").returncode == 10

    at_rest = read_only(holding, *READS)
    refused = read_only(holding, "answer one Go")
    running = holding.start("run", "holds.py", "--name", "two")
    child = int(holding.wait_for("pid"))
    beside = read_only(holding, *READS)
    running.kill()
    running.wait()
    os.kill(child, signal.SIGKILL)
    crashed = read_only(holding, *READS, "show two")

    for done in (at_rest, beside, crashed):
        assert done.returncode == 0, done.stderr
        assert "Well?" in done.stdout
    assert "interrupted  two" in crashed.stdout
    assert refused.returncode == 1
    assert "readonly database" in refused.stderr


LEAVES = """
import asyncio
from signoff import Outcome, StepDef, Workflow

async def both(ctx):
    await asyncio.gather(*(
        ctx.command(["sh", "-c", f"trap '' TERM INT; {words}"], key=key, on_crash="rerun")
        for key, words in {
            "leaves": "sleep 300 & setsid sleep 300 & echo $! > detached; echo $$ > gone",
            "spawns": "echo $$ > pid; while :; do sleep 300 & sleep 0.01; done",
        }.items()
    ))
    return Outcome.OK, {}

WORKFLOW = Workflow("leaves", StepDef("both", handler=both, next={Outcome.OK: None}))
"""


def test_a_second_signal_leaves_nothing_that_a_program_has_left_behind(holding: CliProject) -> None:
    """What outlives its parent is a child of the system's first process, and still ours."""
    holding.write("holds.py", LEAVES)
    process = holding.start("run", "holds.py", "--name", "one")
    groups = [int(holding.wait_for(name)) for name in ("gone", "pid")]
    wait_until(lambda: not is_alive(groups[0]))

    process.send_signal(signal.SIGINT)
    wait_until(lambda: "stopping" in read_some(process.stderr))
    process.send_signal(signal.SIGTERM)
    process.wait()

    assert process.returncode == 130
    groups.append(int(holding.wait_for("detached")))
    left = [each for each in psutil.pids() if _group(each) in groups and is_alive(each)]
    assert left == []


def _group(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def test_a_run_is_cancelled_from_another_process(holding: CliProject) -> None:
    """When `cancel` returns, no program of the run is running."""
    process = holding.start("run", "holds.py", "--name", "one")
    child = int(holding.wait_for("pid"))

    cancelled = holding.signoff("cancel", "one", "--why", "enough")

    assert cancelled.returncode == 0, cancelled.stderr
    assert not is_alive(child)
    process.communicate()
    assert process.returncode == 15


def read_some(stream: object) -> str:
    """Returns the output of a program so far, without waiting for more."""
    assert hasattr(stream, "fileno")
    os.set_blocking(stream.fileno(), False)
    try:
        return os.read(stream.fileno(), 100_000).decode()
    except BlockingIOError:
        return ""
