import asyncio
from pathlib import Path

import pytest

from signoff.app.hand_over import hand_over
from signoff.app.project import Project, open_project
from signoff.app.queue_worker import QueueWorker, lost_workers
from signoff.app.start import plan
from signoff.core import events as ev
from signoff.core.codec import encode
from signoff.core.outcome import Outcome, Status
from signoff.runtime.owner import this_process
from signoff.runtime.store_port import Commit

FLOW = """
from signoff import Outcome, StepDef, Workflow

def work(ctx):
    return Outcome.OK, {}

WORKFLOW = Workflow("plain", StepDef("only", handler=work, next={Outcome.OK: None}))
"""


@pytest.fixture
async def project(tmp_path: Path) -> Project:
    (tmp_path / "flow.py").write_text(FLOW)
    project = open_project(tmp_path, {"XDG_CONFIG_HOME": str(tmp_path / "none")}, create=True)
    await asyncio.to_thread(hand_over, project, plan(tmp_path, {}, "flow.py", {}), name="run")
    return project


def die(project: Project, *recorded: ev.Event) -> None:
    """Leaves the journal of a process that resumed the run, recorded something, and died."""
    store, owner = project.store, this_process()
    row = store.row("run")
    fence = store.take(row.id, owner, lambda _owner: False)
    events = [encode(ev.to_json(event), {}) for event in (ev.RunResumed(), *recorded)]
    commit = Commit(
        run=row.id,
        fence=fence,
        head=row.head,
        events=f"[{','.join(events)}]",
        status=Status.RUNNING,
        step="only",
        iteration=1,
        reason="",
        due_at=None,
        at=1.0,
    )
    assert store.commit([commit])[0].accepted
    store.leave(owner)


async def test_a_run_that_ends_one_worker_after_the_other_is_given_up(project: Project) -> None:
    """Each of them would pay again for the call that is under way."""
    with project:
        for _ in range(3):
            die(project)

        await QueueWorker(project, slots=1, idle_seconds=0.0).work()

        row = project.store.row("run")
        assert (row.status, row.reason[:11]) == (Status.FAILED, "3 processes")


async def test_a_run_that_gets_on_is_not_given_up(project: Project) -> None:
    """Workers are killed for many reasons; only those without any progress count."""
    progress = ev.StepWorked(Outcome.OK)
    with project:
        for recorded in ((), (), (progress,), ()):
            die(project, *recorded)
        assert lost_workers(project.store, project.store.row("run")) == 1

        await QueueWorker(project, slots=1, idle_seconds=0.0).work()

        assert project.store.row("run").status is Status.COMPLETED
