import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from signoff.app.people.answering import AnswerInput, record_answer
from signoff.app.runs.start import plan
from signoff.app.settings.project import Project, open_project
from signoff.app.workers.hand_over import hand_over, wake
from signoff.app.workers.queue_worker import QueueWorker
from signoff.core.errors import RunBusy, StoreError, WriteFailed
from signoff.core.outcome import Status
from signoff.runtime.owner import is_alive, this_process
from signoff.runtime.ports import DispatcherUnavailable, Drive, QueueNeeds, Rest
from signoff.runtime.store_port import DispatchToken
from tests.patience import until

FLOW = """
from datetime import timedelta
from signoff import Outcome, Question, StepDef, Workflow

def call(ctx, folder, key):
    return ctx.command(["sh", "-c", f"echo {ctx.run}-{key} >> {folder}/calls"], key=key)

async def draft(ctx, folder: str):
    await call(ctx, folder, "draft")
    await ctx.park(timedelta(milliseconds=20))
    return Outcome.OK, {}

async def ask(ctx, folder: str):
    answer = await ctx.wait(Question("Name?"))
    await call(ctx, folder, "final")
    return Outcome.OK, {"name": answer.value}

WORKFLOW = Workflow(
    "asks",
    StepDef("draft", handler=draft, next={Outcome.OK: "ask"}),
    StepDef("ask", handler=ask, next={Outcome.OK: None}),
)
"""

HOLDS = """
import asyncio
from pathlib import Path
from signoff import Outcome, StepDef, Workflow

async def hold(ctx, folder: str):
    with Path(folder, "held").open("a") as log:
        log.write("once ")
    while not Path(folder, "go").exists():
        await asyncio.sleep(0.01)
    return Outcome.OK, {}

WORKFLOW = Workflow("holds", StepDef("hold", handler=hold, next={Outcome.OK: None}))
"""

NEVER = 10_000.0
"""Seconds between two sweeps: what happens in a test comes from the dispatcher."""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "flow.py").write_text(FLOW)
    return open_project(tmp_path, {"XDG_CONFIG_HOME": str(tmp_path / "none")}, create=True)


async def queue(project: Project, *names: str) -> None:
    planned = plan(project.home.root, {}, "flow.py", {"folder": str(project.home.root)})
    for name in names:
        await asyncio.to_thread(hand_over, project, planned, name=name)


class LyingDispatcher:
    """Loses every message; brings runs twice, late, in any order, and unknown ones."""

    def __init__(self, seed: int, runs: Sequence[str]) -> None:
        self._chance = random.Random(seed)
        self._runs = [*runs, "unknown-run"]
        self.rests: list[Rest] = []

    async def submit(self, run: str, needs: Sequence[str]) -> None:
        """Loses it."""

    async def wake(self, run: str, needs: Sequence[str]) -> None:
        """Loses it."""

    async def at(self, run: str, needs: Sequence[str], due_at: float) -> None:
        """Loses it."""

    async def check(self) -> str:
        return "here"

    async def serve(self, drive: Drive, needs: QueueNeeds, slots: int) -> None:
        async with asyncio.TaskGroup() as group:
            while True:
                for run in self._chance.sample(self._runs, len(self._runs)):
                    for _ in range(self._chance.choice((0, 1, 2))):
                        group.create_task(self._bring(drive, run))
                await asyncio.sleep(0.02)

    async def _bring(self, drive: Drive, run: str) -> None:
        await asyncio.sleep(self._chance.random() / 20)
        # A higher attempt says that the one before is dead, and the call under way is lost then.
        token = self._chance.choice([None, DispatchToken("d", 1), DispatchToken("other", 7)])
        with suppress(RunBusy):
            self.rests.append(await drive(run, token))


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_dispatcher_that_lies_changes_no_result(project: Project, seed: int) -> None:
    """Truth is in the journal: nothing is lost, and no finished call is made again."""
    names = [f"run-{number}" for number in range(6)]
    await queue(project, *names)
    other, me = open_project(project.home.root, {}), open_project(project.home.root, {})
    with project, other, me:
        liars = [LyingDispatcher(seed + number, names) for number in range(2)]
        tasks = [
            asyncio.create_task(
                QueueWorker(each, slots=4, dispatcher=liar, sweep_seconds=0.2).work()
            )
            for each, liar in zip((project, other), liars, strict=True)
        ]

        await until(lambda: len(me.store.items()) == len(names), "the questions of all runs")
        for item in me.store.items():
            record_answer(me, item.id, AnswerInput("Ann", by="ann"))
            wake(me, item.run)
        done = {Status.COMPLETED}
        await until(lambda: {row.status for row in me.store.rows()} == done, "the ends")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

        calls = (project.home.root / "calls").read_text().split()
        assert sorted(calls) == sorted(f"{n}-{key}" for n in names for key in ("draft", "final"))
        assert sum(len(liar.rests) for liar in liars) > len(names)


class Recorder(LyingDispatcher):
    """Brings nothing, and records what it gets."""

    def __init__(self) -> None:
        super().__init__(0, [])
        self.due: list[str] = []
        self.drive: Drive | None = None

    async def at(self, run: str, needs: Sequence[str], due_at: float) -> None:
        self.due.append(run)

    async def serve(self, drive: Drive, needs: QueueNeeds, slots: int) -> None:
        self.drive = drive
        await asyncio.Event().wait()


async def test_what_a_dispatcher_lost_is_found_and_its_due_time_is_announced(
    project: Project,
) -> None:
    """Without the sweep, a run whose submission was lost would wait forever."""
    await queue(project, "lost")
    recorder = Recorder()
    with project:
        worker = QueueWorker(
            project, slots=1, dispatcher=recorder, look_seconds=0.05, sweep_seconds=0.05
        )
        task = asyncio.create_task(worker.work())
        waiting = Status.WAITING
        await until(lambda: project.store.row("lost").status is waiting, "the question")
        assert recorder.due == ["lost"]
        assert recorder.drive is not None

        assert await recorder.drive("lost", None) == Rest(None)
        assert await recorder.drive("unknown", None) == Rest(ended=True)

        assert (
            len(project.store.journal(project.store.row("lost").id))
            == project.store.row("lost").head
        )
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        with pytest.raises(RunBusy, match="this worker stops"):
            await recorder.drive("lost", None)


async def test_a_later_attempt_on_the_same_worker_ends_with_the_run(project: Project) -> None:
    """If it ended before, the next one would take the run from its driver and repeat its call."""
    (project.home.root / "flow.py").write_text(HOLDS)
    go, recorder = project.home.root / "go", Recorder()
    with project, open_project(project.home.root, {}) as me:
        worker = QueueWorker(project, slots=1, dispatcher=recorder, sweep_seconds=NEVER)
        task = asyncio.create_task(worker.work())
        await until(lambda: recorder.drive, "the start of the worker")
        assert recorder.drive is not None
        # The only sweep has found an empty store.
        await queue(me, "one")
        attempts = [
            asyncio.ensure_future(recorder.drive("one", DispatchToken("d", attempt)))
            for attempt in (1, 2)
        ]
        await until((project.home.root / "held").exists, "the step")
        await asyncio.sleep(0)

        ended_before = [each.done() for each in attempts]
        go.touch()
        rests = await asyncio.gather(*attempts)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert ended_before == [False, False]
    assert rests == [Rest(ended=True)] * 2


async def test_a_later_attempt_on_another_worker_leaves_the_run_to_its_living_driver(
    project: Project,
) -> None:
    """After Temporal was away it believes every attempt dead, and all calls would be repeated."""
    (project.home.root / "flow.py").write_text(HOLDS)
    held, first, second = project.home.root / "held", Recorder(), Recorder()
    other, me = open_project(project.home.root, {}), open_project(project.home.root, {})
    with project, other, me:
        tasks = [
            asyncio.create_task(
                QueueWorker(each, slots=1, dispatcher=recorder, sweep_seconds=NEVER).work()
            )
            for each, recorder in ((project, first), (other, second))
        ]
        await until(lambda: first.drive and second.drive, "the start of the workers")
        assert first.drive is not None
        assert second.drive is not None
        await queue(me, "one")
        driving = asyncio.ensure_future(first.drive("one", DispatchToken("d", 1)))
        await until(held.exists, "the step")

        later = asyncio.ensure_future(second.drive("one", DispatchToken("d", 2)))
        await until(lambda: later.done() or held.read_text() != "once ", "the later attempt")
        (project.home.root / "go").touch()
        rest = await driving
        with pytest.raises(RunBusy, match="driven by another process"):
            await later
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    assert rest == Rest(ended=True)
    assert held.read_text() == "once "


class Interrupted(Recorder):
    """Ends with an error the first time."""

    def __init__(self, error: DispatcherUnavailable | StoreError) -> None:
        super().__init__()
        self._error: DispatcherUnavailable | StoreError | None = error

    async def serve(self, drive: Drive, needs: QueueNeeds, slots: int) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error
        await super().serve(drive, needs, slots)


@pytest.mark.parametrize("error", [WriteFailed("away"), DispatcherUnavailable("away")])
async def test_a_dispatcher_that_was_interrupted_is_served_again(
    project: Project, error: DispatcherUnavailable | StoreError
) -> None:
    """Otherwise its worker would find runs by looking only, until it is started again."""
    dispatcher, warnings = Interrupted(error), list[str]()
    with project:
        worker = QueueWorker(
            project, slots=1, dispatcher=dispatcher, sweep_seconds=0.01, warn=warnings.append
        )
        task = asyncio.create_task(worker.work())
        await until(lambda: dispatcher.drive, "the second time")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert warnings == ["away"]


async def test_a_run_that_cannot_be_driven_here_and_is_driven_elsewhere_ends_no_worker(
    project: Project,
) -> None:
    """A dispatcher may bring it to a second worker, which must not end for it."""
    await queue(project, "one")
    (project.home.root / "flow.py").unlink()
    recorder, warnings = Recorder(), list[str]()
    with project:
        run, other = project.store.row("one").id, this_process()
        project.store.take(run, other, is_alive)
        worker = QueueWorker(project, slots=1, dispatcher=recorder, warn=warnings.append)
        task = asyncio.create_task(worker.work())
        await until(lambda: recorder.drive, "the start of the worker")
        assert recorder.drive is not None

        await recorder.drive("one", None)
        await until(lambda: not worker._tasks, "the end of the try")
        task.cancel()
        (end,) = await asyncio.gather(task, return_exceptions=True)

        assert isinstance(end, asyncio.CancelledError)
        assert "flow.py" in warnings[0]
        assert (project.store.row("one").status, project.store.row("one").owner) == (
            Status.QUEUED,
            other.id,
        )
