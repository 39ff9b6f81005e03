"""Waiting: bounded, and over as soon as the agent has something to do."""

import asyncio

import pytest

from signoff import Outcome, Question, StepContext, StepDef, Workflow
from signoff.app.answering import AnswerInput, record_answer
from signoff.app.home import init_home
from signoff.app.project import Project
from signoff.app.settings import Settings
from signoff.core.outcome import Status
from signoff.mcp.tools import wait_for_news
from signoff.store.sqlite import MemoryStore
from signoff.testing import FrozenClock


async def ask(ctx: StepContext) -> tuple[Outcome, dict[str, object]]:
    return Outcome.OK, {"answer": (await ctx.wait(Question("Which?"))).value}


ASKS = Workflow("asks", StepDef("only", handler=ask, next={Outcome.OK: None}))


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
async def waiting(tmp_path: object, clock: FrozenClock) -> Project:
    """A run `one` that waits for an answer; time passes only while someone sleeps."""
    home = init_home(tmp_path, {}).home  # type: ignore[arg-type]
    project = Project(home, Settings(), MemoryStore(), home.root, clock)
    async with project.engine() as engine:
        await engine.start(ASKS, name="one")
    return project


async def test_a_run_that_needs_someone_is_reported_at_once(
    waiting: Project, clock: FrozenClock
) -> None:
    before = clock.monotonic()

    found = await wait_for_news(waiting, "one", 0, 50)

    assert found.row.status is Status.WAITING
    assert clock.monotonic() == before


async def test_nothing_new_is_reported_after_the_time_and_not_before(
    waiting: Project, clock: FrozenClock
) -> None:
    """An agent that has seen the question waits for the human, without asking all the time."""
    before, head = clock.monotonic(), waiting.store.row("one").head

    found = await wait_for_news(waiting, "one", head, 50)

    assert found.now == found.before
    assert 50 <= clock.monotonic() - before < 51


async def test_an_answer_ends_the_wait_when_the_run_has_used_it(waiting: Project) -> None:
    head = waiting.store.row("one").head

    async def answer() -> None:
        record_answer(waiting, 1, AnswerInput("this", by="ann"))
        async with waiting.engine() as engine:
            await engine.resume("one", ASKS)

    found, _ = await asyncio.gather(wait_for_news(waiting, "one", head, 1e9), answer())

    assert found.row.status is Status.COMPLETED
    assert [each.by for each in found.decisions] == ["ann"]


async def test_a_run_that_has_ended_is_never_waited_for(waiting: Project) -> None:
    """Nothing can change any more."""
    record_answer(waiting, 1, AnswerInput("this", by="ann"))
    async with waiting.engine() as engine:
        await engine.resume("one", ASKS)
    head = waiting.store.row("one").head

    found = await wait_for_news(waiting, "one", head, 1e9)

    assert found.row.status is Status.COMPLETED
