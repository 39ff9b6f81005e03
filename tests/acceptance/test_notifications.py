"""Notifications of the real command line: what they leave alone, and what they leave behind."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from signoff.runtime.owner import birth_of
from tests.acceptance.cli_project import CliProject
from tests.patience import PATIENCE_SECONDS, wait_until, written

FLOW = """
from signoff import Outcome, StepDef, Workflow


async def work(ctx):
    ctx.log("working")
    return Outcome.OK, {}


WORKFLOW = Workflow("flow", StepDef("work", handler=work, next={Outcome.OK: None}))
"""

HANG = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "w").write(f"{os.getpid()}\\n")
time.sleep(600)
"""


@pytest.fixture
def project(project: CliProject) -> CliProject:
    project.write("flow.py", FLOW)
    project.signoff("init")
    return project


def started_with_its_program(project: CliProject, file: Path) -> subprocess.Popen[str]:
    """Starts a run and returns it while its program runs.

    The wait for notifications is bounded, and a busy machine may not start the program in time;
    then another run tries again.
    """
    for _ in range(20):
        process = project.start("run", "flow.py", "-q")
        wait_until(lambda: written(file) or process.poll() is not None, "the program's start")  # noqa: B023  # called at once
        if process.poll() is None:
            return process
        file.unlink(missing_ok=True)
    pytest.fail("the program never started in time")


def test_a_missing_program_changes_neither_the_result_nor_the_exit_code(
    project: CliProject,
) -> None:
    """`signoff run ... && deploy` must not depend on a chat server."""
    project.write(".signoff/config.yaml", "notify: [{on: [ended], command: [no-such-program]}]\n")

    done = project.signoff("run", "flow.py", "--json", "-q")

    assert done.returncode == 0
    assert json.loads(done.stdout)["status"] == "completed"
    assert len(done.stderr.splitlines()) == 1
    assert "warning: program 'no-such-program' did not get a notification" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait_for_notifications_and_their_programs(
    project: CliProject, number: signal.Signals
) -> None:
    """The run is over; its end must not become an interruption, and nothing stays behind."""
    file = project.folder / "pid"
    argv = json.dumps([sys.executable, "-c", HANG, str(file)])
    project.write(".signoff/config.yaml", f"notify: [{{on: [ended], command: {argv}}}]\n")
    process = started_with_its_program(project, file)

    process.send_signal(number)
    process.communicate(timeout=PATIENCE_SECONDS)

    assert process.returncode == 0
    pid = int(written(file))
    wait_until(lambda: birth_of(pid) is None, "the program's end")
