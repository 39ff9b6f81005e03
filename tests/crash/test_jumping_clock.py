from datetime import datetime
from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.errors import RunBusy
from signoff.core.outcome import Outcome, Status
from signoff.core.requests import Question
from signoff.runtime.engine import Engine
from signoff.runtime.store_port import Owner
from signoff.store.sqlite import MemoryStore
from signoff.testing import FrozenClock
from tests.unit.runtime.engine_fixture import EngineFixture, chain, one_step

OK = Outcome.OK
StepResult = tuple[Outcome, dict[str, Any]]
HOUR, DAY = 3600.0, 86_400.0


@pytest.mark.parametrize("jump", [-DAY, -1.0, DAY, 10_000 * DAY])
async def test_a_run_continues_if_the_clock_jumps_between_its_steps(jump: float) -> None:
    """A time server or an empty battery may set the clock at any moment."""
    fixture = EngineFixture()

    def work(ctx: StepContext) -> StepResult:
        fixture.clock.jump(jump)
        return OK, {ctx.step_id: True}

    result = await fixture.start(chain(work, work, work))
    await fixture.close()

    assert result.ok
    assert result.spend.seconds >= 0


@pytest.mark.parametrize("jump", [-DAY, DAY])
async def test_a_run_can_be_resumed_after_the_clock_jumped(jump: float) -> None:
    """The order of events is the order in the journal, not the order of their times."""
    fixture = EngineFixture()
    seen: list[datetime] = []

    async def work(ctx: StepContext) -> StepResult:
        seen.append(ctx.now())
        answer = await ctx.wait(Question("Good?"))
        return OK, {"answer": answer.value}

    workflow = one_step(work)
    await fixture.start(workflow)
    fixture.clock.jump(jump)
    fixture.answer("yes")
    result = await fixture.resume(workflow)
    await fixture.close()

    assert result.state == {"answer": "yes"}
    assert result.spend.seconds >= 0
    assert seen[0] == seen[1]


async def test_a_lease_that_ends_in_the_future_does_not_lock_a_run_forever() -> None:
    """The lease ends by the clock of the store, and not by the one that it was started with."""
    store = MemoryStore()
    clock = FrozenClock()
    store.wall_time = clock.now
    fixture = EngineFixture(store=store, clock=clock)

    async def work(ctx: StepContext) -> StepResult:
        await ctx.wait(Question("Good?"))
        return OK, {}

    workflow = one_step(work)
    await fixture.start(workflow)
    run = store.row("run").id
    elsewhere = Owner("elsewhere", "another-host", 1, "")
    store.take(run, elsewhere, lambda _owner: False, lease_seconds=DAY)

    other = Engine(store, clock=clock)
    with pytest.raises(RunBusy):
        await other.resume("run", workflow)
    clock.jump(2 * DAY)
    result = await other.resume("run", workflow)
    await other.close()
    await fixture.close()

    assert result.status is Status.WAITING
