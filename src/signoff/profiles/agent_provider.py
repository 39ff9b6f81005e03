"""Agents that need no settings, as providers, for programs that ask one outside a session."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from signoff.agents.base import health_of
from signoff.agents.kinds import WITHOUT_SETTINGS
from signoff.core.effects import AgentRequest, EffectId
from signoff.errors import ProviderError
from signoff.profiles.model import AIProviderResult
from signoff.profiles.providers import AIProvider, FsAbility
from signoff.runtime.ports import Agent, Call, capabilities_of


class AgentProvider(AIProvider):
    """Responds with the answer of an agent.

    In a session agents are asked directly: their calls are recorded, and never repeated.
    """

    fs_ability = FsAbility.NONE

    def __init__(self, name: str) -> None:
        """`name` is one of the agents that need no settings."""
        module, _, attribute = WITHOUT_SETTINGS[name].partition(":")
        self._name = name
        self._agent: Agent = getattr(import_module(module), attribute)()

    def validate(self) -> None:
        """Raises `ProviderError` if the agent is not ready."""
        health = asyncio.run(health_of(self._agent))
        if not health.ready:
            raise ProviderError(f"agent {self._name!r} is not ready: {health.detail}")

    def generate(self, prompt: str, context: Mapping[str, Any]) -> AIProviderResult | None:
        """Returns the agent's answer; None if a human answers for it."""
        if capabilities_of(self._agent).answered_by_human:
            return None
        request = AgentRequest(prompt, about={"context": dict(context)})
        call = Call(run="", effect=EffectId("provider#1"), agent=self._name)
        return AIProviderResult(response=asyncio.run(self._agent.ask(request, call)).text)
