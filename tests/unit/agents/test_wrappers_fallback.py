from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from signoff.agents.wrappers import WithFallback
from signoff.core.effects import AgentRequest, Reply
from signoff.core.errors import AgentAuth, AgentBadOutput, AgentError, AgentQuota, AgentTransient
from signoff.core.spend import Usage
from signoff.testing import ScriptedAgent
from tests.agent_harness import call_for

SOON = datetime(2030, 1, 1, tzinfo=UTC)
LATE = SOON + timedelta(days=1)


def pair(*first: AgentError | str, second: AgentError | str = "From codex.") -> WithFallback:
    one = ScriptedAgent().on(lambda _: True, *first)
    two = ScriptedAgent().on(lambda _: True, second)
    return WithFallback(one, two, name="codex", attempts=3)


async def ask(agent: WithFallback, attempt: int = 1, seen: list[str] | None = None) -> Reply:
    call = call_for(seen)._replace(attempt=attempt)
    return await agent.ask(AgentRequest("?", model="claude-opus"), call)


@pytest.mark.parametrize("error", [AgentQuota("used up"), AgentAuth("not logged in")])
async def test_the_fallback_answers_at_once_after_a_quota_or_login_error(error: AgentError) -> None:
    """There is no need to wait if another agent can do the work."""
    seen: list[str] = []

    reply = await ask(pair(error), seen=seen)

    assert (reply.text, reply.agent) == ("From codex.", "codex")
    assert seen == [f"{error}; codex answers instead\n"]


async def test_the_fallback_is_asked_under_its_own_limits() -> None:
    """A fan-out without quota would otherwise send all its requests to the fallback at once."""
    held: list[str] = []

    @asynccontextmanager
    async def slot(name: str) -> AsyncIterator[None]:
        held.append(f"{name} in")
        yield
        held.append(f"{name} out")

    call = call_for()._replace(slot=slot)
    await pair(AgentQuota("used up")).ask(AgentRequest("?"), call)
    await pair("From claude.").ask(AgentRequest("?"), call)

    assert held == ["codex in", "codex out"]


async def test_transient_errors_use_up_the_agents_own_attempts_first() -> None:
    """The engine counts attempts and pauses between them."""
    agent = pair(AgentTransient("busy"))

    for attempt in (1, 2, 3):
        with pytest.raises(AgentTransient):
            await ask(agent, attempt)
    reply = await ask(agent, attempt=4)

    assert reply.agent == "codex"


async def test_the_fallback_starts_with_its_own_first_attempt() -> None:
    """Otherwise it would pass the request to its own fallback without trying."""
    other = ScriptedAgent(["Yes."])
    agent = WithFallback(ScriptedAgent(), other, name="codex", attempts=3)

    await ask(agent, attempt=4)

    assert [call.attempt for call in other.calls] == [1]


async def test_the_fallback_is_not_asked_after_an_invalid_answer() -> None:
    """The agent gets feedback about an invalid answer and can fix it."""
    with pytest.raises(AgentBadOutput):
        await ask(pair(AgentBadOutput("prose")))


async def test_the_fallback_uses_its_own_model() -> None:
    """A model of one vendor is unknown to another."""
    other = ScriptedAgent(["Yes."])
    agent = WithFallback(ScriptedAgent([AgentAuth()]), other, name="codex", attempts=1)

    await ask(agent)

    assert [request.model for request in other.requests] == [None]


@pytest.mark.parametrize(
    ("first", "second", "until"),
    [(SOON, LATE, SOON), (LATE, SOON, SOON), (None, LATE, LATE), (SOON, None, SOON)],
)
async def test_if_both_are_out_of_quota_the_earlier_reset_counts(
    first: datetime | None, second: datetime | None, until: datetime
) -> None:
    """The run is parked until then."""
    agent = pair(AgentQuota(until=first), second=AgentQuota(until=second))

    with pytest.raises(AgentQuota) as raised:
        await ask(agent)

    assert raised.value.until == until


async def test_the_cost_of_the_refused_call_is_added() -> None:
    """A quota can run out in the middle of a billed answer."""
    error = AgentQuota("used up")
    error.usage = Usage(10, 5, 0.25)  # type: ignore[attr-defined]  # as agents do
    two = ScriptedAgent(["Yes."], usage=Usage(1, 1, 0.5))
    agent = WithFallback(ScriptedAgent([error]), two, name="codex", attempts=1)

    reply = await ask(agent)

    assert reply.usage == Usage(11, 6, 0.75)
