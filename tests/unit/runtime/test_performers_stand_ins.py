from collections.abc import AsyncIterator
from typing import Any

import pytest

from signoff.agents.base import ManualAgent
from signoff.core.context import StepContext
from signoff.core.outcome import Status
from tests.unit.runtime.engine_fixture import OK, EngineFixture, Work, chain, one_step, only


async def write(ctx: StepContext) -> Work:
    reply = await ctx.ask("writer", "Write a line.", system="Be brief.")
    return OK, {"line": reply.text, "by": reply.agent}


async def write_as_poet(ctx: StepContext) -> Work:
    return OK, {"line": (await ctx.ask("poet", "Write a line.")).text}


async def write_twice(ctx: StepContext) -> Work:
    async def one(item: StepContext, topic: str) -> str:
        return (await item.ask(topic, f"Write about {topic}.")).text

    return OK, {"lines": await ctx.map(["writer", "claude"], one)}


@pytest.fixture
async def bench() -> AsyncIterator[EngineFixture]:
    found = EngineFixture()
    found._settings["agents"] = {"writer": ManualAgent(), "claude": found.agent}
    found.engine = type(found.engine)(found.store, **found._settings)
    yield found
    await found.close()


async def test_a_manual_agent_is_answered_through_the_inbox(bench: EngineFixture) -> None:
    """A user with only a chat window must be able to take part in any run."""
    workflow = one_step(write)

    waiting = await bench.start(workflow)
    bench.answer("A line.")
    result = await bench.resume(workflow)

    item = only(waiting.inbox)
    assert (item.kind, item.prompt) == ("response", "Be brief.\n\nWrite a line.")
    assert result.state == {"line": "A line.", "by": "writer"}
    assert (result.spend.calls, result.spend.usd) == (1, 0.0)


async def test_a_manual_agent_does_not_hold_up_others(bench: EngineFixture) -> None:
    """If a human does one item of a fan-out, the other items must not wait for it."""
    bench.agent.on("claude", "From claude.")
    workflow = one_step(write_twice)

    await bench.start(workflow)
    assert bench.agent.prompts == ["Write about claude."]
    bench.answer("By hand.")
    result = await bench.resume(workflow)

    assert result.state == {"lines": ["By hand.", "From claude."]}
    assert len(bench.agent.prompts) == 1


@pytest.mark.parametrize(
    ("handler", "state"),
    [
        (write, {"line": "By machine.", "by": "claude"}),
        (write_twice, {"lines": ["By machine."] * 2}),
    ],
)
async def test_a_waiting_run_can_be_switched_to_another_agent(
    bench: EngineFixture, handler: Any, state: dict[str, Any]
) -> None:
    """The person is on holiday, and the run should not be; items of a fan-out notice it too."""
    bench.agent.on("Write", "By machine.")
    workflow = one_step(handler)

    await bench.start(workflow)
    result = await bench.resume(workflow, switch={"writer": "claude"})

    assert {name: value for name, value in result.state.items() if value} == state
    assert bench.store.items("run") == []


async def test_an_agent_can_be_replaced_from_the_start_and_stays_so_on_a_resume(
    bench: EngineFixture,
) -> None:
    """Going on with a run must not hand it back to the agent it was taken from."""
    workflow = one_step(write_as_poet)

    waiting = await bench.engine.start(workflow, name="run", switch={"poet": "writer"})
    bench.answer("By hand.")
    result = await bench.resume(workflow)

    assert waiting.status is Status.WAITING
    assert result.state["line"] == "By hand."


async def test_a_switch_keeps_requests_that_have_nothing_to_do_with_it(
    bench: EngineFixture,
) -> None:
    """A question that is open next to the switched agent's must stay open."""
    workflow = one_step(write)

    await bench.start(workflow)
    again = await bench.resume(workflow, switch={"claude": "writer"})
    bench.answer("A line.")
    result = await bench.resume(workflow)

    assert (again.status, len(again.inbox)) == (Status.WAITING, 1)
    assert result.ok


async def test_a_humans_answer_is_not_used_for_the_next_step(bench: EngineFixture) -> None:
    """Both steps ask under the same name; only one of them asks a human."""
    bench.agent.on("Write a line", "By machine.")

    async def ask_claude(ctx: StepContext) -> Work:
        return OK, {"second": (await ctx.ask("claude", "Write a line.")).text}

    workflow = chain(write, ask_claude)

    result = await bench.answered(workflow, "By hand.")

    assert (result.state["line"], result.state["second"]) == ("By hand.", "By machine.")


async def test_a_switch_loses_no_answer(bench: EngineFixture) -> None:
    """A human has done the work already and must not be asked to do it again."""
    workflow = one_step(write)

    await bench.start(workflow)
    bench.answer("An hour of work.")
    result = await bench.resume(workflow, switch={"writer": "claude"})

    assert result.state["line"] == "An hour of work."
    assert bench.agent.prompts == []
