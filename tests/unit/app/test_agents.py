from typing import Any

import pytest

from signoff import AgentRequest, Reply
from signoff.app.agents import agent_limits, build_agents
from signoff.app.settings import AgentSettings, Rate
from signoff.core.effects import EffectId
from signoff.errors import AgentBadRequest
from signoff.runtime.agent_limits import AgentLimits
from signoff.runtime.ports import Call

CALL = Call("one", EffectId("ask#1"), "key")


class Echo:
    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        return Reply(self.prefix + request.prompt)


def settings(kind: str, **options: Any) -> dict[str, AgentSettings]:
    return {"mine": AgentSettings(kind, options=options)}


async def test_a_kind_can_be_any_callable_of_the_users() -> None:
    """Nobody should have to wait for us to support their model."""
    agents = build_agents(settings(f"{__name__}:Echo", prefix="> "))

    reply = await agents["mine"].ask(AgentRequest("hello"), CALL)

    assert reply.text == "> hello"


@pytest.mark.parametrize(
    ("kind", "options", "complaint"),
    [
        ("telepathy", {}, "no kind 'telepathy'"),
        ("no_such_module:Echo", {}, "no_such_module"),
        (f"{__name__}:Nobody", {}, "Nobody"),
        (f"{__name__}:Echo", {"volume": 11}, "volume"),
    ],
)
async def test_an_agent_that_cannot_be_made_fails_when_it_is_asked(
    kind: str, options: dict[str, Any], complaint: str
) -> None:
    """A wrong setting of an agent that is not used must not stop a run."""
    agents = build_agents(settings(kind, **options))

    with pytest.raises(AgentBadRequest, match=complaint):
        await agents["mine"].ask(AgentRequest("hello"), CALL)


class Person:
    by_person = True

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        raise AssertionError("a person is asked through the inbox")


def test_an_agent_that_is_a_person_can_be_recognised() -> None:
    """The engine puts its prompts into the inbox instead of calling it."""
    made = {
        kind: build_agents(settings(f"{__name__}:{kind}"))["mine"]
        for kind in ("Person", "Echo", "Nobody")
    }

    people = {kind for kind, agent in made.items() if getattr(agent, "by_person", False)}

    assert people == {"Person"}


def test_limits_are_passed_on_only_where_there_are_any() -> None:
    """Each limited agent pays for its waiting line."""
    limits = agent_limits(
        {
            "free": AgentSettings("x"),
            "busy": AgentSettings("x", concurrency=2),
            "slow": AgentSettings("x", rate=Rate(10, 60.0)),
        }
    )

    assert limits == {"busy": AgentLimits(2), "slow": AgentLimits(None, 10, 60.0)}
