import asyncio

from signoff.core.context import StepContext
from signoff.core.effects import AgentRequest
from signoff.runtime.ports import AgentLimits
from signoff.runtime.services import AgentGate
from signoff.testing import FrozenClock
from tests.patience import PATIENCE_SECONDS
from tests.unit.runtime.engine_fixture import OK, EngineFixture, Work, one_step


async def crowd(gate: AgentGate, clock: FrozenClock, count: int) -> list[float]:
    """Lets several call at once and returns when each began."""
    began: list[float] = []

    async def call() -> None:
        async with gate.slot():
            began.append(clock.monotonic())
            await asyncio.sleep(0)

    await asyncio.gather(*(call() for _ in range(count)))
    return began


async def test_no_more_calls_are_in_progress_than_the_agent_takes() -> None:
    """A local model has room for one; two would swap it to death."""
    bench = EngineFixture(agent_limits={"claude": AgentLimits(concurrency=3)})

    async def item(ctx: StepContext, number: int) -> str:
        return (await ctx.ask("claude", f"n{number}")).text

    async def work(ctx: StepContext) -> Work:
        return OK, {"texts": await ctx.map(range(20), item)}

    async def slow(request: AgentRequest) -> str:
        for _ in range(3):
            await asyncio.sleep(0)
        return request.prompt

    bench.agent.on("", slow)

    result = await bench.start(one_step(work))
    await bench.close()

    assert result.state == {"texts": [f"n{n}" for n in range(20)]}
    assert bench.agent.most_at_once == 3


async def test_all_runs_of_a_process_share_an_agents_slots() -> None:
    """The limit is the agent's, not the run's."""
    bench = EngineFixture(agent_limits={"claude": AgentLimits(concurrency=2)})

    async def work(ctx: StepContext) -> Work:
        await ctx.ask("claude", "Write.")
        return OK, {}

    async def slow(_request: AgentRequest) -> str:
        await asyncio.sleep(0)
        return "text"

    bench.agent.on("", slow)
    workflow = one_step(work)

    await asyncio.gather(*(bench.engine.start(workflow, name=f"run{n}") for n in range(6)))
    await bench.close()

    assert bench.agent.most_at_once == 2


async def test_calls_are_spread_over_the_period() -> None:
    """A provider that allows two a minute answers the third with an error."""
    clock = FrozenClock()
    gate = AgentGate(AgentLimits(rate="2/min"), clock)

    assert await crowd(gate, clock, 7) == [0, 0, 60, 60, 120, 120, 180]


async def test_within_any_stretch_of_a_period_there_are_never_too_many() -> None:
    """A provider's window slides; two windows of ours must not touch inside one of its."""
    clock = FrozenClock()
    gate = AgentGate(AgentLimits(rate="3/min"), clock)

    await crowd(gate, clock, 1)
    clock.advance(50)
    began = await crowd(gate, clock, 8)

    times = [0.0, *began]
    for start in times:
        assert len([t for t in times if start <= t < start + 60]) <= 3


async def test_a_call_that_fails_releases_its_slot() -> None:
    """Otherwise three errors would lock an agent for good."""
    gate = AgentGate(AgentLimits(concurrency=1), FrozenClock())

    for _ in range(3):
        try:
            async with gate.slot():
                raise RuntimeError("broken")
        except RuntimeError:
            continue

    async with asyncio.timeout(PATIENCE_SECONDS), gate.slot():
        pass
