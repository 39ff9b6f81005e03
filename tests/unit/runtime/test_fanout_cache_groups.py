"""The first item of a cache group goes ahead, so that the others find the prompt cache filled."""

import asyncio
from typing import Any

import pytest

from signoff.core import events as ev
from signoff.core.context import Failure, StepContext
from signoff.core.effects import AgentRequest, Reply
from signoff.core.errors import AgentTransient, StepFailed
from signoff.core.outcome import Outcome
from signoff.core.requests import Question
from signoff.core.workflow import Workflow
from signoff.runtime.ports import Call
from signoff.testing import FrozenClock
from tests.patience import PATIENCE_SECONDS
from tests.unit.runtime.engine_fixture import EngineFixture, one_step

TOPICS = ["cats", "dogs", "fish"]
LEADER, *OTHERS = TOPICS


class LoggingAgent:
    """Logs who asked and when it begins to answer; the leader's answer waits for `hold`."""

    def __init__(self, *, streams: bool = True, errors: list[Exception] | None = None) -> None:
        self.log: list[str] = []
        self.asked = asyncio.Event()
        self.others_asked = asyncio.Event()
        self.hold: asyncio.Event | None = None
        self._streams = streams
        self._errors = errors or []
        """What the leader's attempts raise, until there is none left."""

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        topic = request.prompt
        self.log.append(f"ask {topic}")
        self.asked.set()
        if set(OTHERS) <= set(self.topics()):
            self.others_asked.set()
        # Time enough for every other item to be asked as well, if it did not wait.
        for _ in range(200):
            await asyncio.sleep(0)
        if topic == LEADER and self._errors:
            raise self._errors.pop(0)
        if self._streams:
            self.log.append(f"begin {topic}")
            call.emit("on ")
        if topic == LEADER and self.hold is not None:
            await self.hold.wait()
        self.log.append(f"end {topic}")
        return Reply(f"on {topic}")

    def topics(self) -> list[str]:
        """Returns what it was asked about, in order."""
        return [each.removeprefix("ask ") for each in self.log if each.startswith("ask ")]

    def before(self, first: str, *others: str) -> bool:
        """Tells whether one entry of the log comes before all the others."""
        return all(self.log.index(first) < self.log.index(other) for other in others)


async def write(ctx: StepContext, topic: str) -> str:
    return (await ctx.ask("claude", topic)).text


def fan(handler: Any = write, group: Any = lambda _item: "claude", **options: Any) -> Workflow:
    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        texts = await ctx.map(TOPICS, handler, key="topics", cache_group=group, **options)
        return Outcome.OK, {"texts": [t if not isinstance(t, Failure) else "-" for t in texts]}

    return one_step(work)


async def run(agent: LoggingAgent, workflow: Workflow, **settings: Any) -> Any:
    bench = EngineFixture(agents={"claude": agent}, **settings)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await bench.start(workflow)
    finally:
        await bench.close()


async def test_the_others_start_when_the_first_one_begins_to_be_answered() -> None:
    """Earlier, each would pay for the common part; later, they would wait for nothing."""
    agent = LoggingAgent()
    agent.hold = agent.others_asked

    result = await run(agent, fan())

    assert result.state == {"texts": ["on cats", "on dogs", "on fish"]}
    assert agent.log[:2] == ["ask cats", "begin cats"]
    assert agent.before("ask dogs", "end cats")
    assert agent.before("ask fish", "end cats", "begin dogs")


class ThreadedAgent(LoggingAgent):
    """Streams from a thread, as an agent around a client without asyncio does."""

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        def emit(text: str) -> None:
            emitting.append(asyncio.get_running_loop().run_in_executor(None, call.emit, text))

        emitting: list[asyncio.Future[None]] = []
        reply = await super().ask(request, call._replace(emit=emit))
        await asyncio.gather(*emitting)
        return reply


async def test_an_agent_may_begin_to_answer_in_a_thread() -> None:
    """The loop's own tools must not be used there; in debug mode, asyncio checks that."""
    asyncio.get_running_loop().set_debug(True)
    agent = ThreadedAgent()
    agent.hold = agent.others_asked

    result = await run(agent, fan())

    assert result.state == {"texts": ["on cats", "on dogs", "on fish"]}


async def test_each_group_has_its_own_leader() -> None:
    """Two agents do not share a cache."""
    agent = LoggingAgent()

    await run(agent, fan(group=lambda topic: "b" if topic == "fish" else "a"))

    assert agent.log[:2] == ["ask cats", "ask fish"]
    assert agent.before("begin cats", "ask dogs")


class PausingClock(FrozenClock):
    """Lets a pause end with an event."""

    def __init__(self, over: asyncio.Event) -> None:
        super().__init__()
        self._over = over

    async def sleep(self, seconds: float) -> None:
        await self._over.wait()


async def test_a_leader_that_has_to_be_retried_lets_the_others_start_at_once() -> None:
    """The pause before a retry may be a minute."""
    agent = LoggingAgent(errors=[AgentTransient("busy")])

    result = await run(agent, fan(), clock=PausingClock(agent.others_asked))

    assert result.state == {"texts": ["on cats", "on dogs", "on fish"]}
    assert agent.topics() == ["cats", "dogs", "fish", "cats"]


async def test_a_leader_whose_handler_fails_before_it_asks_lets_the_others_start() -> None:
    """With retries of the item, its end may be far away."""
    agent = LoggingAgent()

    async def item(ctx: StepContext, topic: str) -> str:
        if topic == LEADER and ctx.attempt == 1:
            raise StepFailed("not yet")
        if topic == LEADER:
            await agent.others_asked.wait()
        return await write(ctx, topic)

    result = await run(agent, fan(item, retries=1))

    assert result.state == {"texts": ["on cats", "on dogs", "on fish"]}


async def test_a_leader_that_waits_for_a_human_lets_the_others_start() -> None:
    """The human may take days."""
    agent = LoggingAgent()

    async def item(ctx: StepContext, topic: str) -> str:
        if topic == LEADER:
            await ctx.wait(Question("Which cats?"))
        return await write(ctx, topic)

    bench = EngineFixture(agents={"claude": agent})
    result = await bench.answered(fan(item), "all")
    await bench.close()

    assert result.state == {"texts": ["on cats", "on dogs", "on fish"]}
    assert agent.topics() == ["dogs", "fish", "cats"]


async def test_only_one_item_at_a_time_is_enough() -> None:
    """The others must not take the place that the leader needs."""
    agent = LoggingAgent()

    result = await run(agent, fan(concurrency=1))

    assert result.state == {"texts": ["on cats", "on dogs", "on fish"]}


async def test_a_run_that_is_stopped_asks_for_no_other_item() -> None:
    """The leader's end releases the others, but a stopped run must not spend more."""
    agent = LoggingAgent()
    agent.hold = asyncio.Event()
    bench = EngineFixture(agents={"claude": agent})

    stopping = asyncio.create_task(bench.start(fan(on_failure="keep")))
    # It has not begun to answer yet, so the others still wait.
    await agent.asked.wait()
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    await bench.close()

    assert agent.topics() == ["cats"]


@pytest.mark.parametrize("at", range(2, 5))
async def test_a_run_that_died_anywhere_resumes_and_pays_for_no_recorded_answer(at: int) -> None:
    """Finished items must neither lead nor be waited for."""
    agent = LoggingAgent()
    bench = EngineFixture(agents={"claude": agent})
    await bench.start_and_die(fan(), at=at)
    await bench.restart(bench.store)
    finished = [event.scope for event in bench.events(ev.ItemFinished)]
    agent.log.clear()

    async with asyncio.timeout(PATIENCE_SECONDS):
        result = await bench.resume(fan())
    await bench.close()

    assert result.state == {"texts": ["on cats", "on dogs", "on fish"]}
    assert len(agent.topics()) <= 3 - len(finished)
