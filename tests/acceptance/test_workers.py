import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.acceptance.cli_project import CliProject, is_alive, worker_for_server
from tests.acceptance.workflows import HOLDS
from tests.patience import wait_until
from tests.run_stores import open_address

ASKS = """
from signoff import Outcome, Question, StepDef, Workflow

async def ask(ctx):
    return Outcome.OK, {"name": (await ctx.wait(Question("Name?"))).value}

WORKFLOW = Workflow("asks", StepDef("ask", handler=ask, next={Outcome.OK: None}))
"""

PLAIN = """
from signoff import Outcome, StepDef, Workflow

def work(ctx):
    return Outcome.OK, {"version": VERSION}

WORKFLOW = Workflow("plain", StepDef("work", handler=work, next={Outcome.OK: None}))
"""


@pytest.fixture
def holding(project: CliProject) -> CliProject:
    project.write("holds.py", HOLDS)
    project.signoff("init")
    return project


@pytest.fixture
def followed(project: CliProject) -> Iterator[CliProject]:
    """A project whose detached runs are driven by a worker that the test need not start."""
    project.signoff("init")
    with worker_for_server(project.folder, project.environment):
        yield project


def start_worker(project: CliProject) -> subprocess.Popen[str]:
    process = project.start("worker")
    wait_until(lambda: process.pid in [each["pid"] for each in project.json("workers")])
    return process


def wait_for_status(project: CliProject, run: str, status: str) -> None:
    wait_until(lambda: project.json("show", run)["status"] == status, f"status {status}")


@pytest.mark.both_stores
def test_a_detached_run_is_driven_and_continued_in_the_background(followed: CliProject) -> None:
    """The terminal can be closed: a worker starts by itself, and answers reach it."""
    followed.write("asks.py", ASKS)

    started = followed.signoff("run", "asks.py", "--detach", "--name", "one")
    wait_for_status(followed, "one", "waiting")
    answered = followed.signoff("answer", "one", "Ann")
    wait_for_status(followed, "one", "completed")

    assert (started.returncode, started.stdout) == (0, "one\n")
    assert "signoff logs -f one" in started.stderr
    assert "a worker continues it" in answered.stderr
    assert len(followed.json("workers")) == 1


@pytest.mark.both_stores
def test_a_killed_workers_run_is_taken_over_without_repeating_finished_work(
    holding: CliProject,
) -> None:
    """Kill -9 of a worker loses nothing and pays for nothing twice."""
    first = start_worker(holding)
    assert holding.signoff("run", "holds.py", "--detach", "--name", "one").returncode == 0
    orphan = int(holding.wait_for("pid"))
    assert holding.json("show", "one")["driver"]["pid"] == first.pid
    assert f"driver   process {first.pid} on " in holding.signoff("show", "one").stdout
    first.kill()
    first.wait()
    assert holding.json("show", "one")["driver"] is None
    (holding.folder / "pid").unlink()
    # No command is needed to continue it, only a worker.
    listed = holding.json("runs", "--status", "queued")[0]
    assert (listed["run"], listed["reason"]) == ("one", "no worker is running")
    assert "\nsignoff_queue_stuck 1.0\n" in holding.signoff("metrics").stdout

    start_worker(holding)
    second = int(holding.wait_for("pid"))

    assert second != orphan
    assert not is_alive(orphan)
    holding.write("go", "")
    wait_for_status(holding, "one", "completed")
    assert (holding.folder / "calls.txt").read_text() == "first\n"
    metrics = holding.signoff("metrics").stdout
    assert "\nsignoff_lease_losses_total 1.0\n" in metrics
    assert "\nsignoff_claim_seconds_count 1.0\n" in metrics


def test_a_stopped_workers_run_is_taken_over_when_its_lease_ends(holding: CliProject) -> None:
    """A process that is stopped for hours exists, but its runs must not wait for it."""
    first = start_worker(holding)
    holding.signoff("run", "holds.py", "--detach", "--name", "one")
    orphan = int(holding.wait_for("pid"))
    first.send_signal(signal.SIGSTOP)
    (holding.folder / "pid").unlink()

    stored = holding.environment.get(
        "SIGNOFF_DATABASE", str(holding.folder / ".signoff/signoff.db")
    )
    with closing(open_address(stored)) as store:
        owner = store.owner(str(store.row("one").owner), lambda _owner: True)
        assert owner is not None
        assert owner.pid == first.pid
        # What 10 seconds without a heartbeat do.
        store.beat(owner, 0.0)
    second = start_worker(holding)
    successor = int(holding.wait_for("pid"))
    driver = holding.json("show", "one")["driver"]["pid"]
    first.send_signal(signal.SIGCONT)
    first.send_signal(signal.SIGTERM)

    assert first.wait() == 0
    assert driver == second.pid
    assert successor != orphan
    assert not is_alive(orphan)
    assert is_alive(successor)
    holding.write("go", "")
    wait_for_status(holding, "one", "completed")
    assert (holding.folder / "calls.txt").read_text() == "first\n"


def test_a_terminated_worker_puts_its_runs_back_into_the_queue(holding: CliProject) -> None:
    """A deployment stops a worker with SIGTERM; its run waits for the next one."""
    worker = start_worker(holding)
    holding.signoff("run", "holds.py", "--detach", "--name", "one")
    child = int(holding.wait_for("pid"))

    worker.send_signal(signal.SIGTERM)

    assert worker.wait() == 0
    assert not is_alive(child)
    listed = holding.signoff("runs", "--status", "queued").stdout
    assert listed.splitlines()[1].split()[:2] == ["one", "queued"]
    text = holding.signoff("show", "one").stdout
    assert text.splitlines()[0] == "● queued  one: no worker is running"


def test_a_queued_run_can_be_cancelled_or_resumed_by_hand(holding: CliProject) -> None:
    """Without a worker, a run that was handed over is not lost."""
    worker = start_worker(holding)
    for name in ("one", "two"):
        holding.signoff("run", "holds.py", "--detach", "--name", name)
    wait_until(lambda: {row["status"] for row in holding.json("runs")} == {"running"})
    worker.send_signal(signal.SIGTERM)
    worker.wait()
    holding.write("go", "")

    cancelled = holding.signoff("cancel", "one")
    resumed = holding.signoff("resume", "two")

    assert cancelled.stdout.startswith("cancelled")
    assert resumed.returncode == 0, resumed.stderr


def test_a_run_that_stopped_on_a_terminal_continues_in_the_background(followed: CliProject) -> None:
    """`resume --detach` frees the terminal; options are recorded before."""
    followed.write("asks.py", ASKS)
    followed.signoff("run", "asks.py", "--name", "one")
    followed.signoff("answer", "one", "Ann")
    assert followed.json("show", "one")["status"] == "waiting"

    resumed = followed.signoff("resume", "one", "--detach", "--limit", "calls=5")
    wait_for_status(followed, "one", "completed")

    assert resumed.stdout == "one\n", resumed.stderr
    assert followed.json("show", "one")["limits"] == {"calls": 5}
    assert followed.signoff("resume", "one", "--detach").returncode == 0


def test_a_worker_with_older_code_says_so(project: CliProject) -> None:
    """Users change their code between runs and do not think of the worker in the background."""
    for version, status in (("1", "completed"), ("2", "failed")):
        project.write("plain.py", PLAIN.replace("VERSION", version))
        project.signoff("run", "plain.py", "--detach", "--name", f"version-{version}")
        wait_for_status(project, f"version-{version}", status)

    shown = project.signoff("show", "version-2").stdout
    assert "a worker keeps the code it started with" in shown
    (worker,) = project.json("workers")
    os.kill(worker["pid"], signal.SIGTERM)
    wait_until(lambda: not is_alive(worker["pid"]), "the end of the worker")
    project.signoff("resume", "version-2", "--detach")
    wait_for_status(project, "version-2", "completed")
