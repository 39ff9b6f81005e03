import asyncio
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.effects import AgentRequest, Reply
from signoff.core.errors import AgentBadOutput, AgentError, AgentTransient
from signoff.core.outcome import Status
from signoff.core.remedies import PassOption
from signoff.core.spend import Limits, Spend, Usage
from signoff.core.step import StepDef
from signoff.core.stop_reason import BudgetReached
from signoff.core.workflow import Workflow
from signoff.runtime.effect_errors import FREE, with_usage
from signoff.runtime.effect_runner import SpendLimiter
from signoff.runtime.suspension import LimitReached
from signoff.testing import ScriptedAgent
from tests.patience import PATIENCE_SECONDS
from tests.unit.runtime.engine_fixture import OK, DyingStore, EngineFixture, Work, chain, one_step


async def ask_one(ctx: StepContext, number: int) -> str:
    return (await ctx.ask("claude", f"n{number}")).text


def fan(count: int = 50) -> Workflow:
    async def work(ctx: StepContext) -> Work:
        return OK, {"texts": await ctx.map(range(count), ask_one)}

    return one_step(work)


def cost(usd: float = 0.0, tokens: int = 0) -> Reply:
    return Reply("text", usage=Usage(tokens_in=tokens, tokens_out=0, usd=usd))


async def ask(ctx: StepContext) -> Work:
    return OK, {ctx.step_id: (await ctx.ask("claude", "Write.")).text}


async def limited(bench: EngineFixture, workflow: Workflow, **limits: Any) -> Any:
    return await bench.engine.start(workflow, name="run", limits=Limits(**limits))


async def test_a_limit_on_calls_is_exact_even_in_a_fan_out(bench: EngineFixture) -> None:
    """Ten calls are ten calls, however many are requested at once."""
    bench.agent.on("", _slowly("text"))

    result = await limited(bench, fan(), calls=10)

    assert result.status is Status.BUDGET
    assert "10 calls" in result.reason
    assert len(bench.agent.calls) == 10
    assert result.spend.calls == 10


@pytest.mark.parametrize("limits", [{"usd": 10.0}, {"tokens": 1000}])
async def test_a_limit_on_money_or_tokens_is_not_overshot_in_a_fan_out(
    bench: EngineFixture, limits: dict[str, Any]
) -> None:
    """Fifty calls must not start at once with the money for ten."""
    bench.agent.on("", _slowly(cost(usd=1.0, tokens=100)))

    result = await limited(bench, fan(), **limits)

    assert result.status is Status.BUDGET
    assert result.spend.known_usd == 10.0
    assert result.spend.known_tokens == 1000


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        ({"tokens": 10}, "tokens"),
        ({"usd": 1.0}, "usd"),
        ({"usd": 1.0, "tokens": 10}, "usd or tokens"),
    ],
    ids=str,
)
async def test_a_limit_that_no_answer_counts_against_stops_the_run_after_one(
    bench: EngineFixture, limits: dict[str, Any], named: str
) -> None:
    """It was taken for nothing, and the calls went on for ever."""
    bench.agent.on("Write.", Reply("text"))

    result = await limited(bench, chain(ask, ask, ask), **limits)
    more = await bench.resume(chain(ask, ask, ask), limits=Limits(calls=9))

    assert (result.status, result.spend.calls) == (Status.FAILED, 1)
    assert result.error is not None
    assert f"do not report their {named}," in result.error.message
    assert (result.error.kind, result.error.remedies) == (
        "NotAllowed",
        (PassOption("limit", "calls=NUMBER"),),
    )
    assert more.ok


async def test_a_limit_that_some_answers_count_against_holds_by_those(bench: EngineFixture) -> None:
    """Money may be unknown where tokens are not."""
    bench.agent.on("Write.", Reply("text", usage=Usage(tokens_in=4, tokens_out=1)))

    result = await limited(bench, chain(ask, ask, ask), usd=1.0, tokens=10)

    assert (result.status, result.spend.calls) == (Status.BUDGET, 2)


async def test_an_answer_that_for_once_reports_nothing_stops_no_run(bench: EngineFixture) -> None:
    """Some servers leave the usage out now and then; the others still count."""
    reported = Reply("text", usage=Usage(tokens_in=1, tokens_out=0))
    bench.agent.on("Write.", reported, Reply("text"), reported, reported)

    result = await limited(bench, chain(ask, ask, ask, ask), tokens=10)

    assert (result.ok, result.spend.known_tokens) == (True, 3)


async def test_the_silence_of_one_agent_says_nothing_of_another() -> None:
    """A free call may come before an expensive one."""
    free, expensive = ScriptedAgent(), ScriptedAgent()
    free.on("", Reply("text"))
    expensive.on("", cost(usd=0.5))
    bench = EngineFixture(agents={"free": free, "expensive": expensive})

    async def work(ctx: StepContext) -> Work:
        await ctx.ask("free", "a", key="a")
        await ctx.ask("expensive", "b", key="b")
        return OK, {}

    result = await limited(bench, one_step(work), usd=1.0)
    await bench.close()

    assert result.ok, result.reason


async def test_a_price_that_does_not_divide_the_limit_is_overshot_by_one_call_at_most(
    bench: EngineFixture,
) -> None:
    """The price of the last call is known only afterwards."""
    bench.agent.on("", _slowly(cost(usd=3.0)))

    result = await limited(bench, fan(), usd=10.0)

    assert 10.0 <= result.spend.known_usd <= 13.0


PRICES = {
    "a cheap first one": [0.01] + [1.0] * 49,
    "more and more expensive": [0.1 * n for n in range(1, 51)],
    "cheaper and cheaper": [0.1 * n for n in range(50, 0, -1)],
    "now and then an expensive one": [2.0 if n % 7 == 6 else 0.1 for n in range(50)],
}


@pytest.mark.parametrize("prices", PRICES.values(), ids=PRICES.keys())
async def test_a_limit_on_money_holds_when_no_two_calls_cost_the_same(
    bench: EngineFixture, prices: list[float]
) -> None:
    """The first bill says little about the next forty-nine."""
    bills = iter(prices)

    async def answer(_request: AgentRequest) -> Reply:
        bill = next(bills)
        for _ in range(3):
            await asyncio.sleep(0)
        return cost(usd=bill)

    bench.agent.on("", answer)

    result = await limited(bench, fan(), usd=5.0)

    calls = prices[: result.spend.calls]
    assert result.status is Status.BUDGET
    assert 5.0 <= result.spend.known_usd <= 5.0 + max(calls)


async def test_below_its_limit_a_fan_out_soon_runs_at_once(bench: EngineFixture) -> None:
    """A limit that is far away must not make everything serial."""
    bench.agent.on("", _slowly(cost(usd=0.01)))

    result = await limited(bench, fan(), usd=100.0)

    assert result.ok
    assert bench.agent.most_at_once > 10


async def test_prices_seen_before_a_wait_are_not_forgotten_after_it(bench: EngineFixture) -> None:
    """A new process goes by what the run's calls have cost on average."""
    bench.agent.on("", _slowly(cost(usd=1.0)))
    workflow = fan(40)
    await limited(bench, workflow, usd=4.0)

    result = await bench.resume(workflow, limits=Limits(usd=8.0))

    assert result.status is Status.BUDGET
    assert result.spend.known_usd == 8.0


async def test_a_limit_counts_what_failed_tries_cost(bench: EngineFixture) -> None:
    """Money spent on an overloaded provider is spent."""
    bench.agent.on("", *[AgentTransient("overloaded")] * 3, "text")

    result = await limited(bench, one_step(ask), calls=2)

    assert result.status is Status.BUDGET
    assert len(bench.agent.calls) == 2


@pytest.mark.parametrize("error", [AgentTransient, AgentBadOutput])
async def test_a_fan_out_of_calls_that_are_billed_and_fail_stays_under_its_limit(
    bench: EngineFixture, error: type[AgentError]
) -> None:
    """300 parallel items at $0.10 must not spend $30 under a limit of $0.50."""
    calls = 0

    async def answer(_request: AgentRequest) -> Reply:
        nonlocal calls
        calls += 1
        for _ in range(3):
            await asyncio.sleep(0)
        raise with_usage(error("overloaded"), Usage(tokens_in=1, tokens_out=1, usd=0.1))

    bench.agent.on("", answer)

    result = await limited(bench, fan(300), usd=0.5)

    assert result.status is Status.BUDGET
    assert calls == result.spend.calls <= 6
    assert result.spend.usd == pytest.approx(0.1 * calls)


async def test_a_retry_that_a_limit_prevented_is_made_after_the_limit_was_raised(
    bench: EngineFixture,
) -> None:
    """Its first attempt has ended and is charged: it is neither in doubt nor charged again."""
    failed = with_usage(AgentTransient("overloaded"), Usage(tokens_in=1, tokens_out=1, usd=0.1))
    bench.agent.on("", failed, cost(usd=0.1))

    async def careful(ctx: StepContext) -> Work:
        return OK, {"text": (await ctx.ask("claude", "Write.", on_crash="fail")).text}

    workflow = one_step(careful)
    held = await limited(bench, workflow, usd=0.1)

    result = await bench.resume(workflow, limits=Limits(usd=1.0))

    assert (held.status, held.spend.usd) == (Status.BUDGET, 0.1)
    assert result.ok
    assert result.spend.calls == 2
    assert result.spend.usd == pytest.approx(0.2)


async def test_calls_that_are_turned_away_do_not_open_the_door_for_many_at_once(
    bench: EngineFixture,
) -> None:
    """Twenty free failures say nothing of the price of an answer."""
    refused = iter(range(20))

    async def answer(_request: AgentRequest) -> Reply:
        await asyncio.sleep(0)
        if next(refused, None) is not None:
            raise with_usage(AgentBadOutput("not now"), FREE)
        return cost(usd=1.0)

    bench.agent.on("", answer)

    result = await limited(bench, fan(), usd=2.0)

    assert result.spend.known_usd <= 3.0


@pytest.mark.parametrize("usd", [math.nan, math.inf, -1.0], ids=str)
async def test_an_impossible_bill_is_unknown_and_its_answer_counts(
    bench: EngineFixture, usd: float
) -> None:
    """The answer is paid for; with NaN in the total, no limit on money would ever be reached."""
    bench.agent.on("", Reply("text", usage=Usage(tokens_in=1, tokens_out=1, usd=usd)))

    result = await limited(bench, one_step(ask), usd=0.5)

    assert result.status is Status.COMPLETED
    assert (result.spend.calls, result.spend.usd, result.spend.known_usd) == (1, None, 0.0)
    assert result.spend.tokens == 2


async def test_a_raised_limit_lets_the_run_continue_where_it_stopped(bench: EngineFixture) -> None:
    """The three answers it has are not paid for again."""
    bench.agent.on("", "text")
    workflow = fan(5)
    await limited(bench, workflow, calls=3)
    again = await bench.resume(workflow)
    calls = len(bench.agent.calls)
    result = await bench.resume(workflow, limits=Limits(calls=5))

    # Ten resumes must not be ten budgets.
    assert (again.status, calls) == (Status.BUDGET, 3)
    assert result.ok
    assert len(bench.agent.calls) == 5


async def test_a_call_in_doubt_still_counts(bench: EngineFixture) -> None:
    """The call was made; a run that dies again and again must not spend without limit."""
    bench.agent.on("", "lost", "text")
    workflow = one_step(ask)
    await bench.restart(DyingStore(bench.store, 3))
    with pytest.raises(Exception, match="disk is full"):
        await limited(bench, workflow, calls=1)

    result = await bench.resume(workflow)

    assert result.status is Status.BUDGET
    assert len(bench.agent.calls) == 1


async def test_a_steps_limit_is_for_one_visit_of_it(bench: EngineFixture) -> None:
    """The next step, and the next visit, have their own."""
    bench.agent.on("", "text")

    async def greedy(ctx: StepContext) -> Work:
        for number in range(3):
            await ctx.ask("claude", f"n{number}")
        return OK, {}

    modest = StepDef("modest", handler=ask, next={OK: "greedy"}, limits=Limits(calls=2))
    result = await bench.start(
        Workflow(
            "flow",
            modest,
            StepDef("greedy", handler=greedy, next={OK: None}, limits=Limits(calls=2)),
        )
    )

    assert result.status is Status.BUDGET
    assert result.stop_reason == BudgetReached("step", "calls", 2, "greedy", "claude")
    assert result.spend.calls == 3


async def test_a_limit_of_the_workflow_holds_unless_the_run_sets_its_own(
    bench: EngineFixture,
) -> None:
    """The author proposes, the operator decides."""
    bench.agent.on("", "text")
    steps = [StepDef("a", handler=ask, next={OK: "b"}), StepDef("b", handler=ask, next={OK: None})]
    workflow = Workflow("flow", *steps, limits=Limits(calls=1))

    own = await bench.engine.start(workflow, name="own")
    limited_run = await bench.engine.start(workflow, name="limited_run", limits=Limits(calls=2))

    assert own.status is Status.BUDGET
    assert limited_run.ok


async def test_time_at_rest_costs_no_seconds(bench: EngineFixture) -> None:
    """A run that waited over the weekend has not worked over the weekend."""

    def work(ctx: StepContext) -> Work:
        bench.clock.advance(10)
        return OK, {}

    workflow = chain(work, work, work)
    await limited(bench, workflow, seconds=15)
    bench.clock.advance(100_000)

    result = await bench.resume(workflow, limits=Limits(seconds=35))

    assert result.ok
    assert result.spend.seconds == 30


async def test_a_command_in_progress_does_not_hold_a_call_back(
    bench: EngineFixture, tmp_path: Path
) -> None:
    """It costs no money, so it does not count."""
    flag = tmp_path / "answered"
    script = f"""
import pathlib, time
while not pathlib.Path({str(flag)!r}).exists():
    time.sleep(0.01)
"""

    async def work(ctx: StepContext) -> Work:
        program = asyncio.ensure_future(ctx.command([sys.executable, "-c", script]))
        await asyncio.sleep(0)
        reply = await ctx.ask("claude", "Write.")
        flag.touch()
        return OK, {"text": reply.text, "code": (await program).code}

    bench.agent.on("", cost(usd=1.0))

    async with asyncio.timeout(PATIENCE_SECONDS):
        result = await limited(bench, one_step(work), usd=10.0)

    assert result.state == {"text": "text", "code": 0}


async def test_a_call_that_never_fits_is_refused_before_it_is_made() -> None:
    """Zero dollars is a limit too: a dry run makes no call."""
    with pytest.raises(LimitReached) as caught:
        await SpendLimiter().wait_for_room("claude", "draft", [("run", Limits(usd=0.0), Spend())])

    assert caught.value.reason == BudgetReached("run", "usd", 0.0, "draft", "claude")


def _slowly(answer: Any) -> Any:
    async def later(_request: AgentRequest) -> Any:
        for _ in range(3):
            await asyncio.sleep(0)
        return answer

    return later
