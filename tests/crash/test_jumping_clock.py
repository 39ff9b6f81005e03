from datetime import datetime, timedelta
from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome, Status
from signoff.core.requests import Question
from signoff.core.spend import Limits
from signoff.errors import RunBusy
from signoff.runtime.engine import Engine
from signoff.runtime.store_port import Owner
from signoff.store.memory import MemoryStore
from signoff.testing import FrozenClock
from tests.unit.runtime.engine_fixture import EngineFixture, chain, one_step

OK = Outcome.OK
Work = tuple[Outcome, dict[str, Any]]
HOUR, DAY = 3600.0, 86_400.0


@pytest.mark.parametrize("jump", [-DAY, -1.0, DAY, 10_000 * DAY])
async def test_a_run_goes_on_however_the_clock_jumps_between_its_steps(jump: float) -> None:
    """Time servers, daylight saving and wrong batteries must not stop anybody's work."""
    bench = EngineFixture()

    def work(ctx: StepContext) -> Work:
        bench.clock.jump(jump)
        return OK, {ctx.step_id: True}

    result = await bench.start(chain(work, work, work))
    await bench.close()

    assert result.ok
    assert result.spend.seconds >= 0


@pytest.mark.parametrize("jump", [-DAY, DAY])
async def test_a_run_is_resumed_however_the_clock_jumped_meanwhile(jump: float) -> None:
    """What was recorded tomorrow is still what happened before."""
    bench = EngineFixture()
    seen: list[datetime] = []

    async def work(ctx: StepContext) -> Work:
        seen.append(ctx.now())
        answer = await ctx.wait(Question("Good?"))
        return OK, {"said": answer.value}

    workflow = one_step(work)
    await bench.start(workflow)
    bench.clock.jump(jump)
    bench.answer("yes")
    result = await bench.resume(workflow)
    await bench.close()

    assert result.state == {"said": "yes"}
    assert result.spend.seconds >= 0
    assert seen[0] == seen[1]


async def test_a_clock_set_back_costs_no_budget_and_gives_none() -> None:
    """A ceiling on seconds counts work; minus an hour of work there is not."""
    bench = EngineFixture()

    def work(ctx: StepContext) -> Work:
        bench.clock.advance(10)
        bench.clock.jump(-HOUR)
        return OK, {}

    result = await bench.engine.start(chain(work, work), name="run", limits=Limits(seconds=HOUR))
    await bench.close()

    assert result.ok
    assert 0 <= result.spend.seconds <= 20


async def test_a_parked_run_is_due_by_the_clock_of_whoever_resumes_it() -> None:
    """Set forward, the clock wakes it; set back, it sleeps on."""
    bench = EngineFixture()

    async def work(ctx: StepContext) -> Work:
        await ctx.park(timedelta(hours=1))
        return OK, {}

    workflow = one_step(work)
    await bench.start(workflow)

    bench.clock.jump(-HOUR)
    early = await bench.resume(workflow)
    bench.clock.jump(2 * HOUR)
    late = await bench.resume(workflow)
    await bench.close()

    assert early.status is Status.PARKED
    assert late.ok


async def test_a_lease_from_the_future_does_not_lock_a_dead_owners_run() -> None:
    """Whether a process here lives is seen, not reckoned."""
    store = MemoryStore()
    clock = FrozenClock()
    bench = EngineFixture(store=store, clock=clock)

    async def work(ctx: StepContext) -> Work:
        await ctx.wait(Question("Good?"))
        return OK, {}

    workflow = one_step(work)
    await bench.start(workflow)
    run = store.row("run").id
    elsewhere = Owner("elsewhere", "another-host", 1, "")
    store.take(run, elsewhere, clock.now() + DAY, lambda _owner: False)

    other = Engine(store, clock=clock)
    with pytest.raises(RunBusy):
        await other.resume("run", workflow)
    clock.jump(2 * DAY)
    result = await other.resume("run", workflow)
    await other.close()
    await bench.close()

    assert result.status is Status.WAITING
