"""Workers on a real PostgreSQL server: they share runs, and take over those of a dead one."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from signoff.app.answering import AnswerInput, record_answer
from signoff.app.hand_over import hand_over, wake
from signoff.app.project import Project, open_project
from signoff.app.queue_worker import QueueWorker
from signoff.app.run_records import metrics_text
from signoff.app.start import plan
from signoff.core.outcome import Status
from tests.patience import until, wait_until
from tests.stubs.postgres import PostgresServer
from tests.stubs.worker_process import start_worker

pytestmark = pytest.mark.slow

FLOW = """
import asyncio
from pathlib import Path
from signoff import Outcome, Question, StepDef, Workflow

async def first(ctx, folder: str):
    await ctx.command(["sh", "-c", f"echo {ctx.run} >> {folder}/calls"], key="first")
    return Outcome.OK, {}

async def ask(ctx):
    return Outcome.OK, {"name": (await ctx.wait(Question("Name?"))).value}

async def hold(ctx, folder: str):
    Path(folder, "held").touch()
    while not Path(folder, "go").exists():
        await asyncio.sleep(0.01)
    return Outcome.OK, {}

def chain(name, second):
    start = StepDef("first", handler=first, next={Outcome.OK: "second"})
    return Workflow(name, start, StepDef("second", handler=second, next={Outcome.OK: None}))

ASKS, HOLDS = chain("asks", ask), chain("holds", hold)
"""


@pytest.fixture
def project(tmp_path: Path, postgres: PostgresServer) -> Iterator[Project]:
    (tmp_path / "flow.py").write_text(FLOW)
    with open_project(tmp_path, _environment(tmp_path), create=True) as opened:
        opened.home.config.write_text(f"database: {postgres.new_database()}\n")
    with open_project(tmp_path, _environment(tmp_path)) as opened:
        yield opened


def _environment(folder: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(folder / "none")}


async def queue(project: Project, target: str, *names: str) -> None:
    params = {"folder": str(project.home.root)}
    planned = plan(project.home.root, _environment(project.home.root), f"flow.py:{target}", params)
    for name in names:
        await asyncio.to_thread(hand_over, project, planned, name=name)


def calls(project: Project) -> list[str]:
    return sorted((project.home.root / "calls").read_text().split())


async def test_two_workers_share_the_runs_and_continue_answered_ones(project: Project) -> None:
    """Every call is made once, and an answer from anywhere reaches the worker that has the run."""
    names = [f"run-{number}" for number in range(8)]
    await queue(project, "ASKS", *names)
    root = project.home.root
    with (
        open_project(root, _environment(root)) as other,
        open_project(root, _environment(root)) as me,
    ):
        tasks = [
            asyncio.create_task(QueueWorker(each, slots=3).work()) for each in (project, other)
        ]
        await until(lambda: len(me.store.items()) == len(names), "all questions")
        for item in me.store.items():
            record_answer(me, item.id, AnswerInput("Ann", by="ann"))
            wake(me, item.run)
        done = {Status.COMPLETED}
        await until(lambda: {row.status for row in me.store.rows()} == done, "the ends")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    assert calls(project) == names
    # Each run was claimed when it was queued, and again when it was answered.
    metrics = metrics_text(project.store, project.clock.now())
    assert "\nsignoff_claim_seconds_count 16.0\n" in metrics
    assert "\nsignoff_lease_losses_total 0.0\n" in metrics


def test_a_killed_workers_run_is_taken_over(project: Project) -> None:
    """No finished call is repeated."""
    root = project.home.root
    first = start_worker(root, _environment(root))
    second = None
    try:
        asyncio.run(queue(project, "HOLDS", "one"))
        wait_until((root / "held").exists, "the second step")
        first.send_signal(signal.SIGKILL)
        first.wait()
        second = start_worker(root, _environment(root))
        (root / "go").touch()
        done = Status.COMPLETED
        wait_until(lambda: project.store.row("one").status is done, "the end of the run")
    finally:
        for process in filter(None, (first, second)):
            process.kill()
            process.wait()

    assert calls(project) == ["one"]
    metrics = metrics_text(project.store, project.clock.now())
    assert "\nsignoff_lease_losses_total 1.0\n" in metrics
    assert "\nsignoff_claim_seconds_count 1.0\n" in metrics
