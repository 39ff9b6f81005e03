from typing import Any

import pytest

from signoff.core.outcome import Outcome, Status
from signoff.core.step import StepDef
from signoff.core.workflow import Workflow
from signoff.runtime.dispatch import AgentRole, Dispatch
from signoff.testing import ScriptedAgent
from tests.unit.runtime.engine_fixture import EngineFixture

OK, FAIL = Outcome.OK, Outcome.FAIL


def flow(how: Dispatch, **more: Any) -> Workflow:
    step = StepDef(
        "check",
        title="Check the draft",
        actions=["Read it.", "Judge it."],
        handler=how,
        next={OK: None, FAIL: None},
        **more,
    )
    return Workflow("flow", step, roles={"quality-reviewer": "claude"})


REVIEW = Dispatch(AgentRole.QUALITY_REVIEWER)


@pytest.mark.parametrize(("status", "outcome"), [("pass", OK), ("fail", FAIL)])
async def test_a_verdict_becomes_the_steps_outcome(
    bench: EngineFixture, status: str, outcome: Outcome
) -> None:
    """What the sub-agent says decides where the run goes."""
    bench.agent.on("Check", {"status": status, "notes": "seen"})

    result = await bench.start(flow(REVIEW))

    assert result.outcome is outcome
    assert result.state == {"check": {"status": status, "notes": "seen"}}


async def test_the_sub_agent_gets_everything_it_needs(bench: EngineFixture) -> None:
    """It sees the prompt and nothing else."""
    how = Dispatch("claude", script="tools.review", context_vars={"depth": 3})
    bench.agent.on("Check", {"status": "pass", "notes": ""})

    await bench.start(flow(how))

    (prompt,) = bench.agent.prompts
    for part in ("Check the draft", "Read it.", "Judge it.", "python3 -m tools.review", '"depth"'):
        assert part in prompt
    assert bench.agent.requests[0].schema is not None


@pytest.mark.parametrize(
    "text",
    ["Looks good to me!", '{"status": "passed"}', "{}", '["pass"]', '{"status": "pass"', "null"],
)
async def test_what_is_no_verdict_is_never_a_pass(bench: EngineFixture, text: str) -> None:
    """The request is retried once with the problem, and then a human decides."""
    bench.agent.on("Check", text)

    result = await bench.start(flow(REVIEW))

    assert result.status is Status.WAITING
    assert len(bench.agent.prompts) == 2
    assert "Previous attempt failed" in bench.agent.prompts[1]
    assert text in bench.agent.prompts[1]


async def test_a_verdict_written_as_text_is_read_too(bench: EngineFixture) -> None:
    """Not every agent takes a schema."""
    bench.agent.on("Check", '{"status": "pass", "notes": "fine"}')

    result = await bench.start(flow(REVIEW))

    assert result.state == {"check": {"status": "pass", "notes": "fine"}}


async def test_a_free_answer_is_taken_as_it_is(bench: EngineFixture) -> None:
    """Exploring has no verdict."""
    bench.agent.on("Check", "Found three files.")

    result = await bench.start(flow(Dispatch("claude", free_form=True)))

    assert result.state == {"check": "Found three files."}
    assert bench.agent.requests[0].schema is None


async def test_a_role_without_an_agent_is_named(bench: EngineFixture) -> None:
    """The remedy is a line in the settings."""
    result = await bench.start(flow(Dispatch(AgentRole.ARCHITECT)))

    assert result.status is Status.FAILED
    assert "unknown agent 'architect'" in result.reason


async def test_the_settings_decide_who_plays_a_role() -> None:
    """The author's choice is a default; the person who runs it has the agents."""
    bench = EngineFixture(roles={"quality-reviewer": "codex"})
    other = ScriptedAgent([{"status": "fail", "notes": "by codex"}])
    await bench.restart(agents={"claude": bench.agent, "codex": other})

    result = await bench.start(flow(REVIEW))

    assert result.state["check"]["notes"] == "by codex"
    assert bench.agent.prompts == []
    await bench.close()
