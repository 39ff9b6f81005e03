import asyncio
from typing import Any

import pytest

from signoff.agents import auto
from signoff.agents.base import Health
from signoff.app.agents import check_agents
from signoff.app.settings import AgentSettings
from signoff.core.effects import AgentRequest, Reply
from signoff.runtime.ports import Call


class Silent:
    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        raise AssertionError("looking asks nothing")


class Fine(Silent):
    async def health(self) -> Health:
        return Health(True, "version 1")


class Stuck(Silent):
    async def health(self) -> Health:
        await asyncio.Event().wait()
        raise AssertionError("no code sets that event")


class Rude(Silent):
    async def health(self) -> Health:
        raise RuntimeError("what do you want?")


def mine(cls: type, **options: Any) -> AgentSettings:
    return AgentSettings(f"{__name__}:{cls.__name__}", options=options)


@pytest.fixture(autouse=True)
def a_bare_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hides what is installed on this machine, and shortens the timeout."""
    monkeypatch.setenv("PATH", "")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OLLAMA_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(auto, "HEALTH_SECONDS", 0.3)


def test_every_agent_is_checked_whatever_another_one_does() -> None:
    """Users run `doctor` when something is broken."""
    found = check_agents(
        {
            "fine": mine(Fine),
            "stuck": mine(Stuck),
            "rude": mine(Rude),
            "silent": mine(Silent),
            "wrong": mine(Fine, volume=11),
            "unknown": AgentSettings("telepathy"),
        }
    )

    assert [name for name in found if found[name].ready][:2] == ["fine", "silent"]
    assert "within" in found["stuck"].detail
    assert "what do you want?" in found["rude"].detail
    assert "agents.wrong: " in found["wrong"].detail
    assert "telepathy" in found["unknown"].detail
    assert all(health.ready or health.remedy or health.remedies for health in found.values())


def test_auto_reports_its_choice_and_checks_no_agent_twice() -> None:
    """A health check of a program takes a second or more."""
    found = check_agents({"stuck": mine(Stuck), "fine": mine(Fine)})

    assert found["auto"].ready
    assert found["auto"].detail.startswith("fine (version 1); skipped: stuck:")
    assert {"claude", "codex", "manual"} <= set(found)
