import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pytest

from signoff.core import errors
from signoff.core import events as ev
from signoff.core.args import Arg
from signoff.core.context import StepContext
from signoff.core.effects import AgentRequest
from signoff.core.outcome import Status
from signoff.core.remedies import PassOption, Resume
from signoff.core.requests import Question
from signoff.core.spend import Limits
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.engine import Engine
from signoff.runtime.owner import this_process
from signoff.runtime.result import RunResult
from signoff.runtime.runner import STOP_POLL_SECONDS
from signoff.runtime.store_port import Alive, Owner, RunId, RunRow, Store, StoredRun
from signoff.testing import FrozenClock, ScriptedAgent, WrappedStore
from tests.patience import PATIENCE_SECONDS
from tests.unit.runtime.engine_fixture import OK, EngineFixture, Work, chain, one_step, only


async def wait(ctx: StepContext) -> Work:
    answer = await ctx.wait(Question("Good?"))
    return OK, {"texts": answer.value}


async def ask(ctx: StepContext) -> Work:
    return OK, {"text": (await ctx.ask("claude", "Write.")).text}


class Hanging:
    """A run whose agent does not answer before the test lets it."""

    def __init__(self, bench: EngineFixture, workflow: Workflow | None = None) -> None:
        self._called = asyncio.Event()
        self.let_go = asyncio.Event()
        bench.agent.on("Write.", self._answer)
        self.task = asyncio.create_task(bench.start(workflow or one_step(ask)))

    async def _answer(self, _request: AgentRequest) -> str:
        self._called.set()
        await self.let_go.wait()
        return "text"

    async def has_started(self) -> None:
        """Returns when the agent has been asked."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._called.wait()


@pytest.fixture
async def other(bench: EngineFixture) -> AsyncIterator[Engine]:
    """Another process on the same store."""
    engine = Engine(bench.store, agents={"claude": bench.agent}, clock=bench.clock)
    yield engine
    await engine.close()


# Starting


async def test_a_result_says_everything_about_the_run(bench: EngineFixture) -> None:
    """Programs act on it; people read it."""
    bench.agent.on("Write.", "hello")

    result = await bench.engine.start(one_step(ask), name="report", target="pkg:FLOW")

    assert isinstance(result, RunResult)
    assert (result.run, result.workflow, result.status) == ("report", "flow", Status.COMPLETED)
    assert (result.outcome, result.step, result.iteration) == (OK, "work", 1)
    assert (result.state, result.inbox, result.reason) == ({"text": "hello"}, (), "")
    assert bench.store.row("report").target == "pkg:FLOW"


async def test_parameters_reach_handlers_by_name_and_are_checked_first(
    bench: EngineFixture,
) -> None:
    """A wrong parameter must not cost a call, or leave a run behind."""

    def work(_ctx: StepContext, rounds: Annotated[int, Arg(min=1, max=5)]) -> Work:
        return OK, {"rounds": rounds}

    workflow = one_step(work)

    result = await bench.engine.start(workflow, {"rounds": "3"}, name="good")
    with pytest.raises(errors.InvalidParams, match="rounds"):
        await bench.engine.start(workflow, {"rounds": 9}, name="bad")
    # Resume is never implied by a name that is taken.
    with pytest.raises(errors.NameTaken) as refused:
        await bench.engine.start(workflow, {"rounds": 3}, name="good")

    assert result.state == {"rounds": 3}
    assert refused.value.remedies == (Resume("good"),)
    assert [row.name for row in bench.store.rows()] == ["good"]


@pytest.mark.parametrize("here", [True, False], ids=["this engine", "another process"])
async def test_a_run_in_progress_is_refused_at_once(
    bench: EngineFixture, other: Engine, here: bool
) -> None:
    """Two runners on one run would pay for everything twice."""
    hanging = Hanging(bench)
    await hanging.has_started()

    with pytest.raises(errors.RunBusy, match="'run'"):
        await (bench.engine if here else other).resume("run", one_step(ask))

    hanging.let_go.set()
    assert (await hanging.task).ok


# Resuming


# Changed definitions


def version(number: int) -> Workflow:
    async def first(ctx: StepContext) -> Work:
        await ctx.wait(Question("Good?"))
        return OK, {"version": 1}

    async def second(ctx: StepContext) -> Work:
        await ctx.wait(Question("Good?"))
        return OK, {"version": 2}

    return one_step([first, second][number - 1])


async def test_a_changed_definition_is_refused_with_both_digests_until_it_is_adopted(
    bench: EngineFixture,
) -> None:
    """A run must not silently continue under other rules than it started with."""
    await bench.start(version(1))
    bench.answer("yes")

    with pytest.raises(errors.DefinitionChanged) as refused:
        await bench.resume(version(2))
    result = await bench.resume(version(2), adopt=True)

    assert version(1).digest[:12] in str(refused.value)
    assert version(2).digest[:12] in str(refused.value)
    assert refused.value.remedies == (Resume("run", adopt=True),)
    row = bench.store.row("run")
    assert result.state == {"version": 2}
    assert row.definition == version(2).digest
    assert only(bench.events(ev.DefinitionAdopted)).definition == version(2).digest
    assert bench.store.description(row.id) == version(2).definition_json


async def test_another_workflow_is_not_taken_for_a_changed_one(bench: EngineFixture) -> None:
    """A hint to adopt the change would hide that the user named the wrong file."""
    await bench.start(version(1))
    other = Workflow("other", StepDef("work", handler=ask, next={OK: None}))

    with pytest.raises(errors.DefinitionChanged) as refused:
        await bench.resume(other)

    assert f"belongs to workflow {version(1).name!r}, not to 'other'" in str(refused.value)
    assert refused.value.remedies == (PassOption("adopt"),)


def asking(prompt: str, *items: str) -> Workflow:
    """Returns a workflow that asks, for each item if there are any, and then waits."""

    async def one(ctx: StepContext, item: str) -> str:
        return (await ctx.ask("claude", f"{prompt} {item}")).text

    async def handler(ctx: StepContext) -> Work:
        texts = await ctx.map(items, one) if items else [await one(ctx, "it")]
        await ctx.wait(Question("Good?"))
        return OK, {"texts": texts}

    handler.__dict__["definition"] = [prompt, *items]
    return one_step(handler)


@pytest.mark.parametrize(
    ("old", "new", "texts"),
    [
        (("old",), ("new",), ["new it"]),
        (
            ("look at", "a", "b"),
            ("look at", "b", "c", "a"),
            ["look at b", "look at c", "look at a"],
        ),
    ],
    ids=["another request", "other items"],
)
async def test_a_step_that_asks_for_something_else_now_starts_over(
    bench: EngineFixture, old: tuple[str, ...], new: tuple[str, ...], texts: list[str]
) -> None:
    """Nothing recorded is taken for another item's, and changed rules leave no run stuck."""
    bench.agent.on("", lambda request: request.prompt)
    await bench.start(asking(*old))

    waiting = await bench.resume(asking(*new), adopt=True)
    bench.answer("yes")
    result = await bench.resume(asking(*new))

    assert waiting.status is Status.WAITING
    assert result.state == {"texts": texts}
    assert len(bench.events(ev.AttemptReplaced)) == 1


async def test_a_changed_definition_that_asks_the_same_pays_nothing_twice(
    bench: EngineFixture,
) -> None:
    """Most changes do not touch the step that waits."""
    bench.agent.on("", lambda request: request.prompt)
    await bench.start(asking("same"))
    bench.answer("yes")
    changed = asking("same")
    changed.steps["work"].handler.__dict__["definition"] = ["same", "but otherwise changed"]

    result = await bench.resume(changed, adopt=True)

    assert result.status is Status.COMPLETED
    assert len(bench.agent.prompts) == 1
    assert bench.events(ev.AttemptReplaced) == []


async def test_a_definition_without_the_current_step_cannot_be_adopted(
    bench: EngineFixture,
) -> None:
    """The run could not continue anywhere, so it keeps the old definition."""
    await bench.start(version(1))
    renamed = Workflow("flow", StepDef("other", handler=wait, next={OK: None}))

    with pytest.raises(errors.DefinitionChanged, match="'work'"):
        await bench.resume(renamed, adopt=True)

    row = bench.store.row("run")
    assert (row.definition, row.status) == (version(1).digest, Status.WAITING)
    bench.answer("yes")
    assert (await bench.resume(version(1))).ok


# Cancelling


async def test_a_run_at_rest_is_cancelled_here(bench: EngineFixture) -> None:
    """No other process is needed for that, and its requests are withdrawn."""
    await bench.start(one_step(wait))

    status = await bench.engine.cancel("run", "no longer needed")

    row = bench.store.row("run")
    assert (status, row.status, row.owner) == (Status.CANCELLED, Status.CANCELLED, None)
    assert row.reason == "no longer needed"
    assert bench.store.items("run") == []
    assert (await bench.resume(one_step(wait))).status is Status.CANCELLED


@pytest.mark.parametrize("here", [True, False], ids=["this engine", "another process"])
async def test_a_run_in_progress_is_cancelled_where_it_is_and_waited_for(
    bench: EngineFixture, other: Engine, here: bool
) -> None:
    """When `cancel` returns, no effect of the run is in progress, wherever it was driven."""
    hanging = Hanging(bench)
    await hanging.has_started()

    status = await (bench.engine if here else other).cancel("run", "enough")
    result = await hanging.task

    assert status is Status.CANCELLED
    assert (result.status, result.reason) == (Status.CANCELLED, "enough")
    assert bench.store.row("run").status is Status.CANCELLED


class LooksTooEarly(WrappedStore):
    """Shows a run as it was just before another process finished it."""

    def __init__(self, inner: Store, before: StoredRun) -> None:
        super().__init__(inner)
        self._before: StoredRun | None = before

    def row(self, name: str) -> RunRow:
        before, self._before = self._before, None
        return before.row if before else self.inner.row(name)

    def load(self, name: str) -> StoredRun:
        before, self._before = self._before, None
        return before or self.inner.load(name)


async def waits_then_asks(ctx: StepContext) -> Work:
    await ctx.wait(Question("Good?"))
    return await ask(ctx)


@pytest.mark.parametrize("owner", [None, "a process that died"])
async def test_a_run_that_ends_while_it_is_resumed_is_not_driven_again(
    bench: EngineFixture, owner: str | None
) -> None:
    """Two people resume at once: the second would pay for the last step once more."""
    workflow = one_step(waits_then_asks)
    bench.agent.on("Write.", "a text")
    await bench.start(workflow)
    before = bench.store.load("run")
    before = before._replace(row=before.row._replace(owner=owner))
    bench.answer("yes")
    first = await bench.resume(workflow)

    await bench.restart(LooksTooEarly(bench.store, before))
    second = await bench.engine.resume("run", workflow)

    assert (second.status, second.state) == (Status.COMPLETED, first.state)
    assert len(bench.agent.prompts) == len(bench.events(ev.RunResumed)) == 1


async def test_a_run_that_ends_while_it_is_cancelled_stays_as_it_ended(
    bench: EngineFixture,
) -> None:
    """What was completed, and may be out in the world, must not be called cancelled."""
    workflow = one_step(wait)
    await bench.start(workflow)
    before = bench.store.load("run")
    bench.answer("yes")
    await bench.resume(workflow)

    await bench.restart(LooksTooEarly(bench.store, before))

    assert await bench.engine.cancel("run", "too late") is Status.COMPLETED
    assert bench.store.row("run").status is Status.COMPLETED


class ComesToRest(WrappedStore):
    """The owner stops to wait at the very moment the user cancels the run."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.refused = 0

    def take(self, run: RunId, owner: Owner, alive: Alive, **options: Any) -> int:
        if not self.refused:
            self.refused += 1
            raise errors.RunBusy
        return self.inner.take(run, owner, alive, **options)


async def test_a_run_that_comes_to_rest_by_itself_is_cancelled_all_the_same(
    bench: EngineFixture,
) -> None:
    """The request must not be lost between two looks."""
    await bench.start(one_step(wait))
    await bench.restart(ComesToRest(bench.store))

    assert await bench.engine.cancel("run", "no") is Status.CANCELLED
    assert bench.store.row("run").status is Status.CANCELLED


async def test_a_program_of_a_dead_process_ends_when_its_run_is_cancelled(
    bench: EngineFixture, other: Engine
) -> None:
    """Cancelled means that no process works on it anymore."""
    sleeper = await asyncio.to_thread(_sleeper)

    async def work(ctx: StepContext) -> Work:
        await ctx.command([sys.executable, "-c", "pass"])
        return OK, {}

    await bench.start_and_die(one_step(work), at=3)
    bench.add_process(sleeper.pid)
    _bury(bench)
    ended = asyncio.create_task(asyncio.to_thread(sleeper.wait, 10))

    assert await other.cancel("run", "gave up") is Status.CANCELLED
    assert await ended != 0


# Interrupting


async def test_an_interrupt_stops_every_run_and_each_can_be_resumed(bench: EngineFixture) -> None:
    """Ctrl-C on a server with a hundred runs loses none of them."""
    called = asyncio.Event()

    async def hang(_request: AgentRequest) -> str:
        called.set()
        await asyncio.Event().wait()
        return ""

    bench.agent.on("Write.", hang, hang, hang, "hello")
    workflow = one_step(ask)
    runs = [asyncio.create_task(bench.engine.start(workflow, name=f"r{n}")) for n in range(3)]
    await called.wait()

    bench.engine.interrupt("Ctrl-C")
    stopped = await asyncio.gather(*runs)

    assert [r.status for r in stopped] == [Status.INTERRUPTED] * 3
    assert {r.reason for r in stopped} == {"Ctrl-C"}
    assert all(bench.store.row(f"r{n}").owner is None for n in range(3))
    await bench.restart()
    again = [await bench.engine.resume(f"r{n}", workflow) for n in range(3)]
    assert all(r.ok for r in again)


async def test_a_program_that_is_stopped_leaves_its_runs_interrupted(bench: EngineFixture) -> None:
    """Cancelling the task that drives a run leaves a run that can be resumed."""
    hanging = Hanging(bench)
    await hanging.has_started()

    hanging.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await hanging.task

    row = bench.store.row("run")
    assert (row.status, row.owner) == (Status.INTERRUPTED, None)


async def test_an_interrupt_before_the_run_has_started_is_obeyed(bench: EngineFixture) -> None:
    """However early the user presses Ctrl-C."""
    bench.agent.on("Write.", "hello")
    run = asyncio.create_task(bench.start(one_step(ask)))

    result = None
    async with asyncio.timeout(PATIENCE_SECONDS):
        while result is None:
            bench.engine.interrupt()
            done, _ = await asyncio.wait({run}, timeout=0)
            result = run.result() if done else None

    assert result.status is Status.INTERRUPTED
    assert (await bench.resume(one_step(ask))).ok


@pytest.mark.parametrize("ask_to_stop", ["interrupt", "cancel the task"])
async def test_who_is_asked_to_stop_while_a_handler_blocks_begins_no_further_step(
    bench: EngineFixture, ask_to_stop: str
) -> None:
    """The next step ran in spite of Ctrl-C, published, and the run ended as `completed`."""
    published: list[str] = []

    def block(_ctx: StepContext) -> Work:
        # As a signal or another process would ask, while the loop cannot listen.
        asked = bench.engine.interrupt if ask_to_stop == "interrupt" else run.cancel
        asyncio.get_running_loop().call_soon_threadsafe(asked)
        bench.clock.advance(1.2 * STOP_POLL_SECONDS)
        return OK, {"blocked": True}

    def publish(_ctx: StepContext) -> Work:
        published.append("now")
        return OK, {}

    flow = chain(block, publish)
    run = asyncio.create_task(bench.start(flow))
    await asyncio.wait({run})

    row = bench.store.row("run")
    assert (row.status, row.step, published) == (Status.INTERRUPTED, "step2", [])
    assert (await bench.resume(flow)).ok
    assert published == ["now"]


@pytest.mark.parametrize("when", ["at once", "in the next tick"])
async def test_a_program_asked_for_just_before_the_stop_is_never_started(
    bench: EngineFixture, tmp_path: Path, when: str
) -> None:
    """It ran after the stop, if it was quick enough, and a human was asked whether it had."""
    file = tmp_path / "file"
    first = bench.engine

    async def work(ctx: StepContext) -> Work:
        if bench.engine is first and when == "at once":
            first.interrupt()
        elif bench.engine is first:
            asyncio.get_running_loop().call_soon(first.interrupt)
        result = await ctx.command([sys.executable, "-c", f"open({str(file)!r}, 'x')"])
        return OK, {"code": result.code}

    flow = one_step(work)
    stopped = await bench.start(flow)
    resumed = await bench.resume(flow)

    assert stopped.status is Status.INTERRUPTED
    # If it had been started, however briefly, a human would now be asked about it.
    assert (resumed.status, resumed.inbox) == (Status.COMPLETED, ())
    assert resumed.state == {"code": 0}


# The engine itself


async def test_a_limit_for_all_runs_is_the_weakest(bench: EngineFixture) -> None:
    """Settings propose, workflows and people overrule them."""
    agent = ScriptedAgent().on("", "text")
    engine = Engine(
        bench.store, agents={"claude": agent}, clock=FrozenClock(), limits=Limits(calls=0)
    )
    workflow = one_step(ask)

    limited = await engine.start(workflow, name="limited")
    free = await engine.start(workflow, name="free", limits=Limits(calls=1))
    await engine.close()

    assert limited.status is Status.BUDGET
    assert free.ok


def _bury(bench: EngineFixture) -> None:
    """Makes the owner of the run look like a process that is gone."""
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    row: RunRow = bench.store.row("run")
    dead = replace(this_process(), id=row.owner or "", pid=gone.pid)
    bench.store.beat(dead, 999.0)


def _sleeper() -> subprocess.Popen[bytes]:
    script = "import time; time.sleep(600)"
    return subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
