import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from signoff import plugins
from signoff.agents.auto import AutoAgent, Candidate
from signoff.agents.base import Health
from signoff.core.effects import AgentRequest
from signoff.core.errors import AgentAuth, ConfigError
from signoff.core.remedies import CheckSetup, Resume
from signoff.runtime.ports import capabilities_of
from signoff.testing import ScriptedAgent
from tests.agent_harness import call_for


class Sick(ScriptedAgent):
    def __init__(self, health: Health, models: list[str] | None = None) -> None:
        super().__init__()
        self.on(lambda _: True, "Yes.")
        self.looks = 0
        self._health = health
        self._models = models or []

    async def health(self) -> Health:
        self.looks += 1
        return self._health

    async def models(self) -> list[str]:
        return self._models


def ready(*models: str) -> Sick:
    return Sick(Health(True, "version 1"), list(models))


def absent() -> Sick:
    return Sick(Health(False, "not installed", "install it"))


def auto(*candidates: Candidate, among: list[str] | None = None) -> AutoAgent:
    return AutoAgent(agents={each.name: each for each in candidates}, among=among)


def candidate(name: str, agent: Sick, kind: str, *, configured: bool = False) -> Candidate:
    agent.capabilities = capabilities_of(plugins.load(plugins.AGENT_KINDS[kind]))
    return Candidate(name, agent, configured=configured)


async def asked(agent: AutoAgent, model: str | None = None) -> tuple[str | None, list[str]]:
    seen: list[str] = []
    reply = await agent.ask(AgentRequest("?", model=model), call_for(seen))
    return reply.agent, seen


async def test_the_first_ready_agent_is_asked_and_reported() -> None:
    """A user of `auto` wants to know which agent answered, and why not another."""
    agent = auto(
        candidate("claude", absent(), "claude"),
        candidate("codex", ready(), "codex"),
        candidate("gemini", ready(), "gemini"),
    )

    who, seen = await asked(agent)
    again = await asked(agent)

    assert who == "codex"
    assert seen == ["auto: codex (version 1); skipped: claude: not installed\n"]
    assert again == ("codex", [])


async def test_every_agent_is_checked_once_and_the_choice_is_reported_once() -> None:
    """Critics run concurrently, and a health check may take a second or more."""
    claude = ready()
    agent = auto(candidate("claude", claude, "claude"))

    results = await asyncio.gather(*(asked(agent) for _ in range(4)))

    assert claude.looks == 1
    assert [len(seen) for _, seen in results].count(1) == 1


async def test_the_chosen_agent_is_asked_under_its_own_limits() -> None:
    """`concurrency: 2` of claude also limits requests that come through `auto`."""
    held: list[str] = []

    @asynccontextmanager
    async def slot(name: str) -> AsyncIterator[None]:
        held.append(name)
        yield

    agent = auto(candidate("claude", ready(), "claude"))
    await agent.ask(AgentRequest("?"), call_for()._replace(slot=slot))

    assert held == ["claude"]


async def test_configured_agents_come_before_built_in_ones() -> None:
    """A user who configured a local model does not expect a cloud model to be chosen."""
    agent = auto(
        candidate("claude", ready(), "claude"),
        candidate("desk", ready(), "ollama", configured=True),
    )

    assert (await asked(agent))[0] == "desk"


async def test_humans_checks_and_recordings_are_never_chosen() -> None:
    """A run without supervision would wait for a human."""
    kinds = ("manual", "check", "scripted", "cassette", "auto")
    mine = [candidate(kind, ready(), kind, configured=True) for kind in kinds]

    assert (await asked(auto(*mine, candidate("claude", ready(), "claude"))))[0] == "claude"


async def test_a_model_too_small_to_review_is_chosen_only_if_it_is_listed() -> None:
    """It would spend minutes on each review, and no answer could be used."""
    small = candidate("local", ready(), "local", configured=True)

    with pytest.raises(AgentAuth, match="never chosen unless named: local"):
        await asked(auto(small))
    assert (await asked(auto(small, among=["local"])))[0] == "local"


async def test_the_error_says_what_each_agent_lacks_that_somebody_began_to_set_up() -> None:
    """The user learns how to continue; answering manually is always possible."""
    agent = auto(
        candidate("claude", Sick(Health(False, "no program", absent=True)), "claude"),
        candidate("anthropic", Sick(Health(False, "key found, no model set")), "anthropic"),
        candidate("codex", absent(), "codex"),
        candidate("local", ready(), "local"),
    )

    with pytest.raises(AgentAuth) as raised:
        await asked(agent)

    assert str(raised.value) == (
        "no agent can review yet (codex: not installed (install it); anthropic: key found, no "
        "model set; never chosen unless named: local; not set up here: claude)"
    )
    assert {CheckSetup(), Resume("run", agent="auto", instead="manual")} <= {*raised.value.remedies}
    assert not (await agent.health()).ready


async def test_a_check_is_never_among_the_agents_to_choose_from() -> None:
    """Its answer to a request to write is a review, which would become the text."""
    with pytest.raises(ConfigError, match="only checks"):
        auto(candidate("words", ready(), "check"), among=["words"])


async def test_a_program_that_may_be_anything_is_chosen_only_if_it_is_listed() -> None:
    program = candidate("spell", ready(), "command", configured=True)
    program.agent.capabilities = replace(program.agent.capabilities, named_only=True)  # type: ignore[attr-defined]

    health = await auto(program).health()

    assert not health.ready
    assert "never chosen unless named: spell" in health.detail
    assert (await asked(auto(program, among=["spell"])))[0] == "spell"
