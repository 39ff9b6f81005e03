"""Asks every agent how it is, all at once and for a few seconds at most."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from signoff.agents.auto import look
from signoff.agents.base import Health, models_of
from signoff.app.agents import build_agent, build_agents, known_agents
from signoff.app.settings import AgentSettings
from signoff.core.effects import AgentRequest, Reply
from signoff.errors import ConfigError
from signoff.runtime.ports import Agent, Call


def look_at_agents(settings: Mapping[str, AgentSettings]) -> dict[str, Health]:
    """Returns how every agent is: those the settings name first, then those always there."""
    return asyncio.run(_look(settings))


async def _look(settings: Mapping[str, AgentSettings]) -> dict[str, Health]:
    known = known_agents(settings)
    agents = build_agents(settings)
    asked = [name for name, each in known.items() if each.kind != "auto"]
    healths = await asyncio.gather(*(look(agents[name]) for name in asked))
    found = dict(zip(asked, healths, strict=True))
    told: dict[str, Agent] = {name: _Told(agents[name], found[name]) for name in asked}
    for name, each in known.items():
        if each.kind == "auto":
            found[name] = await _whom(name, known, told)
    return {name: found[name] for name in known}


async def _whom(name: str, known: Mapping[str, AgentSettings], told: Mapping[str, Agent]) -> Health:
    try:
        return await look(build_agent(name, known, told))
    except ConfigError as error:
        return Health(False, str(error), "mend its settings")


class _Told:
    """An agent that has been asked how it is, and is not asked again."""

    def __init__(self, agent: Agent, health: Health) -> None:
        self._agent = agent
        self._health = health

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        return await self._agent.ask(request, call)

    async def health(self) -> Health:
        return self._health

    async def models(self) -> list[str]:
        return await models_of(self._agent)
