import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from signoff.app.runs.run_records import living_workers
from signoff.app.runs.runs import current_row
from signoff.app.runs.start import plan
from signoff.app.settings.project import Project, open_project
from signoff.app.workers.hand_over import hand_over
from signoff.app.workers.queue_worker import (
    LOOK_SECONDS,
    QueueWorker,
    has_work,
    lost_workers,
    rest_of,
)
from signoff.core import events as ev
from signoff.core.codec import encode
from signoff.core.errors import RunBusy, WriteFailed
from signoff.core.outcome import Outcome, Status
from signoff.runtime.owner import this_process
from signoff.runtime.ports import SystemClock
from signoff.runtime.store_port import FORGOTTEN_SECONDS, Commit, CommitResult, Store
from signoff.testing import WrappedStore
from tests.patience import until
from tests.store_suite.journal_writer import JournalWriter, new_request, start_run

FLOW = """
import asyncio
from datetime import timedelta
from pathlib import Path
from signoff import Outcome, Question, StepDef, Workflow

async def note(ctx, folder: str):
    await ctx.command(["sh", "-c", f"echo {ctx.run} >> {folder}/calls"], key="note")
    return Outcome.OK, {}

async def hold(ctx, folder: str):
    await ctx.command(["sh", "-c", f"echo {ctx.run} >> {folder}/calls"], key="note")
    Path(folder, "held").touch()
    while not Path(folder, "go").exists():
        await asyncio.sleep(0.01)
    return Outcome.OK, {}

async def call(ctx, folder: str):
    script = "echo $1 >> calls; touch held; until test -e go; do sleep 0.01; done"
    await ctx.command(["sh", "-c", script, "sh", ctx.run], cwd=folder, key="call")
    return Outcome.OK, {}

async def ask(ctx):
    return Outcome.OK, {"name": (await ctx.wait(Question("Name?"))).value}

async def park(ctx):
    await ctx.park(timedelta(milliseconds=1))
    return Outcome.OK, {}

def one(name, handler):
    return Workflow(name, StepDef("only", handler=handler, next={Outcome.OK: None}))

NOTES, HOLDS, CALLS = one("notes", note), one("holds", hold), one("calls", call)
ASKS, PARKS = one("asks", ask), one("parks", park)
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "flow.py").write_text(FLOW)
    return open_project(tmp_path, {"XDG_CONFIG_HOME": str(tmp_path / "none")}, create=True)


async def queue(project: Project, target: str, *names: str) -> None:
    params = {"folder": str(project.home.root)} if target in ("NOTES", "HOLDS", "CALLS") else {}
    planned = plan(project.home.root, {}, f"flow.py:{target}", params)
    for name in names:
        await asyncio.to_thread(hand_over, project, planned, name=name)


@asynccontextmanager
async def working(
    project: Project,
    slots: int = 4,
    kind: type[QueueWorker] = QueueWorker,
    look_seconds: float = LOOK_SECONDS,
) -> AsyncIterator[asyncio.Task[None]]:
    worker = kind(project, slots=slots, look_seconds=look_seconds)
    task = asyncio.create_task(worker.work())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def statuses(project: Project) -> set[Status]:
    return {row.status for row in project.store.rows()}


def calls(project: Project) -> list[str]:
    path = project.home.root / "calls"
    return sorted(path.read_text().split()) if path.exists() else []


async def test_two_workers_share_the_runs(project: Project) -> None:
    """Each call is made once, by one of the workers."""
    names = [f"run-{number}" for number in range(30)]
    await queue(project, "NOTES", *names)
    other = open_project(project.home.root, {})
    with project, other:
        async with working(project), working(other):
            await until(lambda: statuses(project) == {Status.COMPLETED}, "the end of all runs")

        assert calls(project) == sorted(names)


async def test_an_idle_worker_ends_and_a_due_time_keeps_it(project: Project) -> None:
    """A worker that was started in the background must not stay forever, nor end too early."""
    with project:
        await QueueWorker(project, slots=1, idle_seconds=0.0).work()
        await queue(project, "PARKS", "parks")
        await QueueWorker(project, slots=1, idle_seconds=0.0).work()

        assert statuses(project) == {Status.COMPLETED}
        assert living_workers(project.store) == []


async def test_of_workers_that_end_when_idle_the_first_one_stays(project: Project) -> None:
    """Twenty clicks at the same time must not start twenty workers that stay."""
    await queue(project, "HOLDS", "holds")
    other = open_project(project.home.root, {})
    with project, other:
        async with working(project):
            await until((project.home.root / "held").exists, "the first call")
            await QueueWorker(other, slots=1, idle_seconds=600).work()

            assert len(living_workers(project.store)) == 1


async def test_a_worker_that_slept_for_hours_is_listed_again(project: Project) -> None:
    """Others have removed it meanwhile; runs that it can take would seem to have no worker."""
    clock = _Clock()
    with project:
        async with working(replace(project, clock=clock)):
            await until(lambda: living_workers(project.store), "the worker")
            project.store.leave(living_workers(project.store)[0].owner)
            clock.ahead = FORGOTTEN_SECONDS
            await until(lambda: living_workers(project.store), "the worker again")


class _Clock(SystemClock):
    ahead = 0.0

    def now(self) -> float:
        return super().now() + self.ahead


class FullDisk(WrappedStore):
    """Has no room for anything that is recorded."""

    def commit(self, commits: Sequence[Commit], *, wait: bool = True) -> list[CommitResult]:
        raise WriteFailed("the disk is full")


async def test_a_worker_that_cannot_record_anything_ends_with_the_reason(project: Project) -> None:
    """If it claimed run after run, none could continue elsewhere."""
    await queue(project, "NOTES", "a", "b")
    with project:
        store, project.store = project.store, FullDisk(project.store)
        with pytest.raises(WriteFailed, match="disk is full"):
            await QueueWorker(project, slots=1).work()
        project.store = store

        assert {(row.status, row.owner) for row in store.rows()} == {(Status.QUEUED, None)}
        assert calls(project) == []


class LostServer(WrappedStore):
    """A server that is lost for single calls, one after the other."""

    def __init__(self, inner: Store, *losses: str) -> None:
        super().__init__(inner)
        self.losses = list(losses)
        """The calls that fail, in this order; a claim that finds something is waited for."""

    def local_file(self) -> None:
        return None

    def forward(self, method: str, *args: Any, **options: Any) -> Any:
        if method == "claim":
            claimed = super().forward(method, *args, **options)
            if claimed and self.losses[:1] == ["claim"]:
                self.losses.pop(0)
            return claimed
        if self.losses[:1] == [method]:
            self.losses.pop(0)
            raise WriteFailed("the server cannot be reached")
        return super().forward(method, *args, **options)


@pytest.mark.parametrize(
    "losses", [("claim", "rows"), ("commit", "row"), ("commit", "row", "row", "commit", "row")]
)
async def test_a_server_that_is_lost_again_and_again_leaves_no_run_without_a_driver(
    project: Project, losses: Sequence[str]
) -> None:
    """The run belongs to a worker that lives: no other one would ever take it."""
    await queue(project, "NOTES", "one")
    with project:
        server = LostServer(project.store, *losses)
        store, project.store = project.store, server
        async with working(project, look_seconds=0.05):
            done = Status.COMPLETED
            await until(lambda: store.row("one").status is done, "the end of the run")
        project.store = store

    assert server.losses == []


async def test_a_run_that_parks_while_its_worker_waits_for_a_lost_server_continues(
    project: Project,
) -> None:
    """The worker claims it again, and must not believe that it still drives it."""
    await queue(project, "PARKS", "parks")
    with project:
        server = LostServer(project.store, "claim", "rows")
        store, project.store = project.store, server
        async with working(project, look_seconds=0.05):
            await until(lambda: statuses(project) == {Status.COMPLETED}, "the end of the run")
        project.store = store

    assert server.losses == []


class SlowlyEnding(QueueWorker):
    """Takes a while after a run has come to rest, as with a slow disk."""

    async def _drive_once(self, *args: Any) -> None:
        await super()._drive_once(*args)
        await asyncio.sleep(0.5)


async def test_a_run_that_is_due_before_its_task_is_over_continues(project: Project) -> None:
    """An answer or a time may come at once, and the same worker may be the first to claim it."""
    await queue(project, "PARKS", "parks")
    with project:
        async with working(project, kind=SlowlyEnding):
            await until(lambda: statuses(project) == {Status.COMPLETED}, "the end of the run")


def has_recorded_program(store: Store) -> bool:
    """Tells whether the next commit of the only run is the end of its program."""
    journal = store.journal(store.row("one").id)
    return any('"born"' in row.events for row in journal)


async def test_a_reply_that_a_lost_server_could_not_take_is_not_paid_for_again(
    project: Project,
) -> None:
    """The worker lives and has it, so it stores it when the server is back."""
    await queue(project, "CALLS", "one")
    with project:
        server = LostServer(project.store)
        store, project.store = project.store, server
        async with working(project, look_seconds=0.05):
            await until(lambda: has_recorded_program(store), "the call")
            server.losses += ["commit", "keep_late"]
            (project.home.root / "go").touch()
            await until(lambda: statuses(project) == {Status.COMPLETED}, "the end of the run")
        project.store = store

        assert server.losses == []
        assert calls(project) == ["one"]


async def test_a_worker_stores_the_reply_of_a_run_that_is_no_longer_its_own(
    project: Project,
) -> None:
    """Another process may need it later; this one would keep it in memory until it ends."""
    await queue(project, "CALLS", "one")
    with project, closing(sqlite3.connect(project.store.local_file() or "")) as others:
        server = LostServer(project.store)
        store, project.store = project.store, server
        run = store.row("one").id
        async with working(project, look_seconds=0.05):
            await until(lambda: has_recorded_program(store), "the call")
            with others:
                others.execute("UPDATE runs SET status = 'interrupted', owner = NULL")
            server.losses.append("commit")
            (project.home.root / "go").touch()
            await until(lambda: store.late(run), "the late reply")
        project.store = store

        assert calls(project) == ["one"]
        assert store.row("one").status is Status.INTERRUPTED


async def test_a_run_that_the_server_gives_back_to_its_worker_is_driven_again(
    project: Project,
) -> None:
    """A server that failed over may not have the last commits: no one else has taken the run."""
    await queue(project, "HOLDS", "holds")
    with project, closing(sqlite3.connect(project.store.local_file() or "")) as server:
        async with working(project):
            await until((project.home.root / "held").exists, "the first call")
            with server:
                server.execute("UPDATE runs SET fence = fence - 1")
            (project.home.root / "go").touch()
            await until(lambda: statuses(project) == {Status.COMPLETED}, "the end of the run")

        assert calls(project) == ["holds"]


async def test_a_run_waits_for_a_worker_that_has_what_it_needs(project: Project) -> None:
    """It is not given to a worker that would fail it, and it says what is missing."""
    planned = plan(project.home.root, {}, "flow.py:NOTES", {"folder": str(project.home.root)})
    await asyncio.to_thread(hand_over, project, planned, name="heavy", labels=["gpu"])
    with project:
        assert current_row(project, project.store.row("heavy")).reason == "no worker is running"
        async with working(project):
            await until(lambda: living_workers(project.store), "the worker")
            await queue(project, "NOTES", "light")
            done = Status.COMPLETED
            await until(lambda: project.store.row("light").status is done, "the end of the other")

            row = current_row(project, project.store.row("heavy"))
            assert (row.status, row.reason) == (Status.QUEUED, "no worker has gpu")
        await QueueWorker(
            project, slots=1, labels=["gpu"], idle_seconds=0.0, look_seconds=0.05
        ).work()

        assert statuses(project) == {Status.COMPLETED}


async def test_a_new_worker_continues_the_run_of_a_dead_one_that_needs_an_agent(
    project: Project,
) -> None:
    """After a power cut no run is queued, and no worker has checked any agent."""
    planned = plan(project.home.root, {}, "flow.py:PARKS", {})
    await asyncio.to_thread(hand_over, project, planned, name="one", labels=["agent:manual"])
    file = project.store.local_file()
    assert file is not None
    with closing(sqlite3.connect(file)) as db, db:
        db.execute("UPDATE runs SET status = 'running', owner = 'a worker that is gone'")
    with project:
        queued = current_row(project, project.store.row("one"))
        assert (queued.status, queued.reason) == (Status.QUEUED, "no worker is running")

        async with working(project, look_seconds=0.05):
            await until(lambda: statuses(project) == {Status.COMPLETED}, "the end of the run")


async def test_an_agent_is_checked_when_a_run_needs_it(project: Project) -> None:
    """A worker that starts does not ask every agent there is."""
    planned = plan(project.home.root, {}, "flow.py:NOTES", {"folder": str(project.home.root)})
    await asyncio.to_thread(
        hand_over, project, planned, name="asks", labels=["agent:manual", "agent:nobody"]
    )
    await asyncio.to_thread(hand_over, project, planned, name="able", labels=["agent:manual"])
    with project:
        async with working(project):
            done = Status.COMPLETED
            await until(lambda: project.store.row("able").status is done, "the end of the run")

            assert "agent:manual" in living_workers(project.store)[0].capabilities
            row = current_row(project, project.store.row("asks"))
            assert row.reason == "no worker has agent:nobody"


FLOW_LOST = """
from signoff import Outcome, StepDef, Workflow

def work(ctx):
    return Outcome.OK, {}

WORKFLOW = Workflow("plain", StepDef("only", handler=work, next={Outcome.OK: None}))
"""


@pytest.fixture
async def deadly(tmp_path: Path) -> Project:
    (tmp_path / "flow.py").write_text(FLOW_LOST)
    deadly = open_project(tmp_path, {"XDG_CONFIG_HOME": str(tmp_path / "none")}, create=True)
    await asyncio.to_thread(hand_over, deadly, plan(tmp_path, {}, "flow.py", {}), name="run")
    return deadly


def die(deadly: Project, *recorded: ev.Event) -> None:
    """Leaves the journal of a process that resumed the run, recorded something, and died."""
    store, owner = deadly.store, this_process()
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


async def test_a_run_that_ends_one_worker_after_the_other_is_given_up(
    deadly: Project,
) -> None:
    """Each of them would pay again for the call that is under way."""
    with deadly:
        for _ in range(3):
            die(deadly)

        await QueueWorker(deadly, slots=1, idle_seconds=0.0).work()

        row = deadly.store.row("run")
        assert (row.status, row.reason[:11]) == (Status.FAILED, "3 processes")


async def test_a_run_that_gets_on_is_not_given_up(deadly: Project) -> None:
    """Workers are killed for many reasons; only those without any progress count."""
    progress = ev.StepWorked(Outcome.OK)
    with deadly:
        for recorded in ((), (), (progress,), ()):
            die(deadly, *recorded)
        assert lost_workers(deadly.store, deadly.store.row("run")) == 1

        await QueueWorker(deadly, slots=1, idle_seconds=0.0).work()

        assert deadly.store.row("run").status is Status.COMPLETED


HOUR = 3600.0


@pytest.fixture
def resting(tmp_path: Path) -> Project:
    return open_project(tmp_path, {"XDG_CONFIG_HOME": str(tmp_path / "none")}, create=True)


def rested(resting: Project, status: Status, due_in: float | None = None) -> JournalWriter:
    """Returns a run that has come to rest."""
    run = start_run(resting.store, "one")
    due_at = None if due_in is None else resting.clock.now() + due_in
    run.append(status=status, release=True, due_at=due_at, opened=[new_request()])
    return run


@pytest.mark.parametrize(
    ("status", "due_in", "expected"),
    [
        (Status.QUEUED, None, True),
        (Status.PARKED, -HOUR, True),
        (Status.PARKED, HOUR, False),
        (Status.WAITING, -HOUR, True),
        (Status.WAITING, HOUR, False),
        (Status.WAITING, None, False),
        (Status.COMPLETED, None, False),
        (Status.FAILED, -HOUR, False),
    ],
)
def test_a_run_continues_when_it_is_queued_or_its_time_has_come(
    resting: Project, status: Status, due_in: float | None, expected: bool
) -> None:
    """A dispatcher may ask for it at any time."""
    with resting:
        rested(resting, status, due_in)

        assert has_work(resting, resting.store.row("one")) is expected


def test_an_answer_lets_a_waiting_run_continue(resting: Project) -> None:
    """Even before its deadline."""
    with resting:
        rested(resting, Status.WAITING, HOUR)
        (item,) = resting.store.items("one")
        resting.store.answer(item.id, '{"value": true}', "ann", 1.0, item.digest)

        assert has_work(resting, resting.store.row("one"))


def test_a_dispatcher_learns_for_how_long_a_run_rests(resting: Project) -> None:
    """It comes back then, and not again after the run has ended."""
    with resting:
        run = rested(resting, Status.PARKED, HOUR)
        rest = rest_of(resting, "one")
        assert rest.seconds == pytest.approx(HOUR, abs=HOUR / 2)
        run.append(status=Status.RUNNING)
        with pytest.raises(RunBusy, match="another process"):
            rest_of(resting, "one")
        run.append(status=Status.COMPLETED, release=True)
        assert rest_of(resting, "one").ended
