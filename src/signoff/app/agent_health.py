"""Asks every agent how it is, all at once and for a few seconds at most."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from signoff.agents.auto import check_health
from signoff.agents.base import Health, models_of
from signoff.app.agents import build_agent, build_agents, known_agents
from signoff.app.settings import AgentSettings
from signoff.core.effects import AgentRequest, Reply
from signoff.errors import ConfigError
from signoff.runtime.ports import Agent, Call, capabilities_of


def look_at_agents(settings: Mapping[str, AgentSettings]) -> dict[str, Health]:
    """Returns how every agent is: those the settings name first, then those always there."""
    return asyncio.run(_look(settings))


async def _look(settings: Mapping[str, AgentSettings]) -> dict[str, Health]:
    known = known_agents(settings)
    agents = build_agents(settings)
    # Agents that pass requests on report the others' health, so these are asked first, and once.
    asked = [name for name in known if not capabilities_of(agents[name]).needs_agents]
    healths = await asyncio.gather(*(check_health(agents[name]) for name in asked))
    found = dict(zip(asked, healths, strict=True))
    others = {**agents, **{name: _Examined(agents[name], found[name]) for name in asked}}
    for name in known.keys() - found.keys():
        found[name] = await _passing_on(name, known, others)
    return {name: found[name] for name in known}


async def _passing_on(
    name: str, known: Mapping[str, AgentSettings], others: Mapping[str, Agent]
) -> Health:
    try:
        return await check_health(build_agent(name, known, others))
    except ConfigError as error:
        return Health(False, str(error), "fix its settings")


class _Examined:
    """An agent whose health is known, and is not looked at again."""

    def __init__(self, agent: Agent, health: Health) -> None:
        self._agent = agent
        self._health = health
        self.capabilities = capabilities_of(agent)

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        return await self._agent.ask(request, call)

    async def health(self) -> Health:
        return self._health

    async def models(self) -> list[str]:
        return await models_of(self._agent)
