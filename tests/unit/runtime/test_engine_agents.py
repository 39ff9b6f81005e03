"""Agents that a workflow brings."""

from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.core.errors import UnknownName
from signoff.core.outcome import Outcome, Status
from signoff.core.requests import Question
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.testing import ScriptedAgent
from tests.unit.runtime.engine_fixture import OK, EngineFixture


def asks(agent: str, brings: dict[str, Any]) -> Workflow:
    async def work(ctx: StepContext) -> tuple[Outcome, dict[str, Any]]:
        first = await ctx.ask(agent, "Hello", key="first")
        await ctx.wait(Question("Continue?"))
        second = await ctx.ask(agent, "Again", key="second")
        return OK, {"replies": [first.text, second.text]}

    return Workflow("flow", StepDef("work", handler=work, next={OK: None}), agents=brings)


def agent(reply: str) -> ScriptedAgent:
    return ScriptedAgent().on("", reply)


async def test_an_agent_of_the_workflow_answers_in_its_runs_and_is_counted(
    bench: EngineFixture,
) -> None:
    """A provider that a workflow brings is journaled and charged like any other agent."""
    own = agent("mine")
    flow = asks("own", {"own": own})

    result = await bench.answered(flow)

    assert result.state == {"replies": ["mine", "mine"]}
    assert (len(own.prompts), result.spend.calls) == (2, 2)


async def test_an_agent_of_the_settings_wins(bench: EngineFixture) -> None:
    """The user can replace what a workflow brings, without changing the workflow."""
    bench.agent.on("", "theirs")

    await bench.start(flow := asks("claude", {"claude": agent("mine")}))
    bench.answer("yes")
    result = await bench.resume(flow)

    assert result.state == {"replies": ["theirs", "theirs"]}


async def test_other_workflows_do_not_get_the_agent(bench: EngineFixture) -> None:
    """Two workflows may bring agents of the same name."""
    await bench.start(asks("own", {"own": agent("mine")}))

    other = await bench.engine.start(asks("own", {}), name="other")

    assert other.status is Status.FAILED
    assert "unknown agent 'own'" in other.reason


async def test_agents_can_be_switched_to_and_from_it(bench: EngineFixture) -> None:
    """Names of such agents are valid wherever an agent is named."""
    flow = asks("claude", {"own": agent("mine")})

    waiting = await bench.engine.start(flow, name="run", switch={"claude": "own"})
    bench.answer("yes")
    bench.agent.on("", "theirs")
    result = await bench.resume(flow, switch={"claude": "claude"})

    assert waiting.status is Status.WAITING
    assert result.state == {"replies": ["mine", "theirs"]}
    with pytest.raises(UnknownName, match=r"valid names: .*own"):
        await bench.engine.start(flow, name="other", switch={"claude": "owm"})


def test_agents_do_not_change_the_definition() -> None:
    """They are objects of the process, not of the definition."""
    assert asks("own", {"own": agent("mine")}).digest == asks("own", {}).digest
