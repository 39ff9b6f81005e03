import asyncio
import re

import pytest

from signoff.core.effects import AgentRequest, EffectId, Reply
from signoff.core.errors import AgentBadRequest, AgentTransient
from signoff.runtime.ports import Call
from signoff.testing import DelayedAnswer, FrozenClock, ScriptedAgent

CALL = Call("run", EffectId("ask#1"))


async def ask(agent: ScriptedAgent, prompt: str) -> Reply:
    return await agent.ask(AgentRequest(prompt), CALL)


async def test_a_prompt_without_an_answer_is_refused_and_reported() -> None:
    """A made-up answer would let a test pass that proves nothing."""
    agent = ScriptedAgent(["one"])
    await ask(agent, "first")

    with pytest.raises(AgentBadRequest, match=r"no answer to its call 2: 'second'.*\.on\("):
        await ask(agent, "second")


@pytest.mark.parametrize(
    "match", ["draft", re.compile(r"^Write .* now$"), lambda request: len(request.prompt) == 17]
)
async def test_a_rule_answers_matching_prompts(match: object) -> None:
    """Concurrent calls arrive in any order, so answers are matched by prompt."""
    agent = ScriptedAgent(["from the list"]).on(match, "from the rule")  # type: ignore[arg-type]  # each in turn

    assert (await ask(agent, "Write a draft now")).text == "from the rule"
    assert (await ask(agent, "something else entirely")).text == "from the list"


async def test_the_first_matching_rule_wins_and_its_last_answer_repeats() -> None:
    """A loop ends because the last answer is good and stays so."""
    agent = ScriptedAgent().on("Write", "short", "long enough").on("", "anything")

    texts = [(await ask(agent, prompt)).text for prompt in ("Write", "x", "Write", "Write")]

    assert texts == ["short", "anything", "long enough", "long enough"]


async def test_a_function_of_the_request_may_be_async() -> None:
    """Functions may be plain or async, and may raise."""

    async def later(request: AgentRequest) -> Reply:
        await asyncio.sleep(0)
        return Reply(request.prompt * 2)

    def fails(_request: AgentRequest) -> AgentTransient:
        return AgentTransient("overloaded")

    agent = ScriptedAgent([lambda request: request.prompt.upper(), later, fails])

    assert (await ask(agent, "a")).text == "A"
    assert (await ask(agent, "b")).text == "bb"
    with pytest.raises(AgentTransient):
        await ask(agent, "c")


async def test_answers_can_be_delayed() -> None:
    """With a frozen clock, a delay takes no time."""
    clock = FrozenClock()
    agent = ScriptedAgent([DelayedAnswer(90, "late")], delay=10, clock=clock)

    assert (await ask(agent, "a")).text == "late"
    assert clock.slept == [10, 90]
