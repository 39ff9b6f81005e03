import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.errors import AgentError, StepFailed, UsageError
from signoff.core.outcome import Outcome, Status
from signoff.core.requests import Question
from signoff.runtime.ports import Notice, Progress
from tests.unit.runtime.engine_fixture import OK, EngineFixture, Work, one_step, only

# Replay


async def test_a_recorded_reply_is_never_asked_for_again(bench: EngineFixture) -> None:
    """It was paid for; asking again pays twice and may answer differently."""

    async def work(ctx: StepContext) -> Work:
        first = await ctx.ask("claude", "Write.")
        second = await ctx.ask("claude", f"Shorten: {first.text}")
        await ctx.wait(Question("Good?"))
        third = await ctx.ask("claude", f"Polish: {second.text}")
        return OK, {"draft": third.text}

    bench.agent.on("Write.", "a").on("Shorten: a", "b").on("Polish: b", "c")
    workflow = one_step(work)

    result = await bench.answered(workflow)

    assert result.state == {"draft": "c"}
    assert bench.agent.prompts == ["Write.", "Shorten: a", "Polish: b"]
    assert [call.effect for call in bench.agent.calls] == ["ask#1", "ask#2", "ask#3"]


async def test_an_error_that_was_handled_is_replayed_as_it_was(bench: EngineFixture) -> None:
    """Asked again, the agent might answer, and the handler would take another road than before."""

    async def work(ctx: StepContext) -> Work:
        try:
            draft = (await ctx.ask("claude", "Write.", key="first")).text
        except AgentError:
            draft = (await ctx.ask("claude", "Write simply.", key="second")).text
        answer = await ctx.wait(Question(f"Is {draft!r} good?"))
        return OK, {"draft": draft, "texts": answer.value}

    bench.agent.on("Write simply.", "plan b").on("Write.", AgentError("no"), "plan a")
    workflow = one_step(work)

    result = await bench.answered(workflow)

    assert result.state == {"draft": "plan b", "texts": "yes"}
    assert bench.agent.prompts == ["Write.", "Write simply."]


# Identity


async def test_a_handler_that_makes_another_request_on_replay_is_an_error(
    bench: EngineFixture,
) -> None:
    """A recorded reply to another question must not be passed off as the answer to this one."""
    prompts = ["one", "two"]

    async def work(ctx: StepContext) -> Work:
        await ctx.ask("claude", prompts[0])
        await ctx.wait(Question("Good?"))
        return OK, {}

    bench.agent.on("one", "1")
    workflow = one_step(work)

    await bench.start(workflow)
    prompts.reverse()
    bench.answer("yes")
    result = await bench.resume(workflow)

    assert result.status is Status.FAILED
    assert "not deterministic" in result.reason
    assert "'ask'" in result.reason


async def both_ask(ctx: StepContext) -> None:
    await asyncio.gather(ctx.ask("claude", "a"), ctx.ask("claude", "b"))


async def both_fan_out(ctx: StepContext) -> None:
    async def item(_ctx: StepContext, value: int) -> int:
        await asyncio.sleep(0)
        return value

    await asyncio.gather(ctx.map([1], item), ctx.map([2], item))


@pytest.mark.parametrize(("both", "key"), [(both_ask, "ask"), (both_fan_out, "map")])
async def test_what_is_requested_side_by_side_needs_keys_of_its_own(
    bench: EngineFixture, both: Any, key: str
) -> None:
    """Which of two equal keys came first depends on the weather."""

    async def work(ctx: StepContext) -> Work:
        await both(ctx)
        return OK, {}

    bench.agent.on("a", "1").on("b", "2")

    result = await bench.start(one_step(work))

    assert result.status is Status.FAILED
    assert f"share the key '{key}'" in result.reason


@pytest.mark.parametrize("key", ["", "a[0]", "]"])
async def test_a_key_that_could_pose_as_a_fan_out_item_is_refused(
    bench: EngineFixture, key: str
) -> None:
    """Brackets mark items in the identity of an effect."""

    async def work(ctx: StepContext) -> Work:
        await ctx.ask("claude", "a", key=key)
        return OK, {}

    result = await bench.start(one_step(work))

    assert result.status is Status.FAILED
    assert "without brackets" in result.reason


async def test_a_payload_that_cannot_be_stored_is_refused_before_it_goes_out(
    bench: EngineFixture,
) -> None:
    """What was not recorded must not be paid for."""

    async def work(ctx: StepContext) -> Work:
        await ctx.ask("claude", "a", temperature={1, 2})
        return OK, {}

    result = await bench.start(one_step(work))

    assert result.status is Status.FAILED
    assert "'ask'" in result.reason
    assert bench.agent.requests == []


async def test_each_visit_and_attempt_has_effects_of_its_own(bench: EngineFixture) -> None:
    """A reply recorded for the first try must not answer the second."""

    async def work(ctx: StepContext) -> Work:
        reply = await ctx.ask("claude", "Write.")
        if ctx.attempt == 1:
            raise StepFailed("again")
        return (OK if ctx.visit == 2 else Outcome.ITERATE), {"draft": reply.text}

    bench.agent.on("Write.", "1", "2", "3", "4")

    result = await bench.start(one_step(work, next={OK: None, Outcome.ITERATE: "work"}))

    assert result.state == {"draft": "4"}
    assert len({call.idempotency_key for call in bench.agent.calls}) == 4


async def test_time_and_chance_are_the_same_on_every_replay(bench: EngineFixture) -> None:
    """A prompt with a date or a sample in it must be the same prompt tomorrow."""
    seen: list[tuple[datetime, float]] = []

    async def work(ctx: StepContext) -> Work:
        seen.append((ctx.now(), ctx.random().random()))
        bench.clock.advance(5)
        seen.append((ctx.now(), ctx.random().random()))
        await ctx.wait(Question("Good?"))
        return OK, {}

    workflow = one_step(work)

    await bench.start(workflow)
    bench.clock.advance(86_400)
    bench.answer("yes")
    result = await bench.resume(workflow)

    assert result.ok
    assert seen[:2] == seen[2:]
    assert seen[1][0] - seen[0][0] == timedelta(seconds=5)
    assert seen[0][1] != seen[1][1]


# Time and chance


async def test_chance_differs_from_run_to_run_and_from_visit_to_visit(bench: EngineFixture) -> None:
    """Chance that is always the same is none."""
    seen: list[float] = []

    def work(ctx: StepContext) -> Work:
        seen.append(ctx.random().random())
        return (OK if ctx.visit == 2 else Outcome.ITERATE), {}

    workflow = one_step(work, next={OK: None, Outcome.ITERATE: "work"})

    await bench.engine.start(workflow, name="one")
    await bench.engine.start(workflow, name="two")

    assert len(set(seen)) == 4


# Parking


async def test_a_parked_run_continues_when_its_time_has_come(bench: EngineFixture) -> None:
    """`resume --due` wakes it; before that a resume changes nothing."""

    async def work(ctx: StepContext) -> Work:
        await ctx.park(timedelta(hours=1))
        return OK, {"woken": True}

    workflow = one_step(work)
    began = bench.clock.now()

    parked = await bench.start(workflow)
    too_early = await bench.resume(workflow)
    bench.clock.advance(3600)
    result = await bench.resume(workflow)

    assert (parked.status, parked.due_at) == (Status.PARKED, began + 3600)
    assert (too_early.status, too_early.due_at) == (Status.PARKED, began + 3600)
    assert result.state == {"woken": True}


# Progress


async def test_progress_reaches_observers_and_is_not_recorded() -> None:
    """A progress bar must not cost a commit per step of it."""
    notices: list[Notice] = []

    class Watcher:
        def notice(self, notice: Notice) -> None:
            notices.append(notice)

    def work(ctx: StepContext) -> Work:
        ctx.progress("half way")
        return OK, {}

    bench = EngineFixture(observers=[Watcher()])
    await bench.start(one_step(work))

    assert only([n for n in notices if isinstance(n, Progress)]) == Progress(
        "run", "work", "", "half way"
    )
    assert len(bench.events()) == 3
    await bench.close()


# Handlers that do not let themselves be suspended


async def test_a_park_that_the_handler_swallows_still_applies(bench: EngineFixture) -> None:
    """A bare `except:` around a pause must not shorten it."""

    async def handler(ctx: StepContext) -> Work:
        with suppress(BaseException):
            await ctx.park(timedelta(hours=1))
        return OK, {}

    workflow = one_step(handler)
    result = await bench.start(workflow)

    assert result.status is Status.PARKED
    bench.clock.advance(3600)
    assert (await bench.resume(workflow)).status is Status.COMPLETED


async def test_what_is_asked_for_after_the_end_is_refused(bench: EngineFixture) -> None:
    """A task left behind would keep spending, and write into the journal of an ended run."""
    left: list[StepContext] = []

    async def handler(ctx: StepContext) -> Work:
        left.append(ctx)
        return OK, {}

    await bench.start(one_step(handler))
    recorded = len(bench.events())

    for late in (
        left[0].ask("claude", "Write."),
        left[0].wait(Question("Good?")),
        left[0].map([1], lambda _ctx, item: item),
        left[0].park(datetime(2100, 1, 1, tzinfo=UTC)),
    ):
        with pytest.raises(UsageError, match="after its handler had ended"):
            await late
    await bench.restart()
    assert bench.agent.prompts == []
    assert len(bench.events()) == recorded


async def test_an_effect_on_another_loop_is_refused(bench: EngineFixture) -> None:
    """`asyncio.run` in a thread would wait for ever: nothing there hears of the reply."""

    async def handler(ctx: StepContext) -> Work:
        async def elsewhere() -> None:
            await ctx.ask("claude", "Write.")

        await asyncio.to_thread(asyncio.run, elsewhere())
        return OK, {}

    result = await bench.start(one_step(handler))

    assert result.status is Status.FAILED
    assert "from another thread" in result.reason


# A forgotten await


@pytest.mark.parametrize("forget", ["ask", "checked", "write", "command", "wait", "map", "park"])
async def test_what_is_not_awaited_fails_the_step_by_name(
    bench: EngineFixture, forget: str
) -> None:
    """The run would end as completed, with nothing of it done."""

    async def work(ctx: StepContext) -> Work:
        match forget:
            case "ask":
                ctx.ask("claude", "Write.", key="forgotten")
            case "checked":
                ctx.ask("claude", "How many?", key="forgotten", read=lambda reply: reply.text)
            case "write":
                ctx.write("a.md", "text", key="forgotten")
            case "command":
                ctx.command(["true"], key="forgotten")
            case "wait":
                ctx.wait(Question("Good?"), key="forgotten")
            case "map":
                ctx.map([1], lambda _ctx, item: item, key="forgotten")
            case _:
                ctx.park(timedelta(days=1), key="forgotten")
        return OK, {}

    result = await bench.start(one_step(work))

    assert result.status is Status.FAILED
    assert "requested 'forgotten' but did not await it" in result.reason
    assert bench.agent.prompts == []


async def test_an_item_that_awaits_nothing_fails_alone(bench: EngineFixture) -> None:
    """Its siblings have done their work."""
    bench.agent.on("Write", "text")

    async def item(ctx: StepContext, number: int) -> str:
        asked = ctx.ask("claude", f"Write {number}.")
        return (await asked).text if number else "nothing"

    async def work(ctx: StepContext) -> Work:
        found = await ctx.map([0, 1], item, on_failure="keep")
        return OK, {"texts": [getattr(each, "error", each) for each in found]}

    result = await bench.start(one_step(work))

    nothing, text = result.state["texts"]
    assert (text, "did not await it" in nothing) == ("text", True)
