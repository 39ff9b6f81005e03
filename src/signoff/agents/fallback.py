"""A fallback agent that answers when another one cannot.

It replaces an agent that is out of quota or not logged in at once. An agent with transient
errors gets all its attempts first; the engine counts them and continues counting with the
fallback.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from signoff.agents.base import AgentWrapper
from signoff.core.effects import AgentRequest, Reply
from signoff.core.spend import USAGE_AMOUNTS, Usage
from signoff.errors import AgentAuth, AgentError, AgentQuota
from signoff.runtime.effect_errors import FREE, usage_of, with_usage
from signoff.runtime.ports import Agent, Call, Capabilities, capabilities_for, capabilities_of


class WithFallback(AgentWrapper):
    """Asks one agent, and its fallback when it cannot answer."""

    def __init__(self, agent: Agent, fallback: Agent, *, name: str, attempts: int) -> None:
        """Takes the fallback, its name, and after how many attempts it is used."""
        super().__init__(agent)
        self._fallback = fallback
        self._name = name
        self._attempts = attempts

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Returns an answer, with the fallback's name when the agent itself did not answer."""
        if call.attempt > self._attempts:
            call.emit(f"it failed {self._attempts} times; {self._name} answers instead\n")
            return await self._ask_fallback(
                request, call._replace(attempt=call.attempt - self._attempts)
            )
        try:
            return await self._agent.ask(request, call)
        except (AgentQuota, AgentAuth) as error:
            call.emit(f"{error}; {self._name} answers instead\n")
            reason = error
        try:
            reply = await self._ask_fallback(request, call)
        except AgentQuota as error:
            # The run is parked until the first of the two agents can answer again.
            raise _earlier_quota(reason, error) from error
        except AgentError as error:
            raise with_usage(error, _sum(usage_of(reason), usage_of(error))) from error.__cause__
        return replace(reply, usage=_sum(usage_of(reason), reply.usage))

    async def capabilities_for(self, model: str | None) -> Capabilities:
        """Returns the agent's own; a price is reported only when both agents report one."""
        own = await capabilities_for(self._agent, model)
        fallback = await capabilities_for(self._fallback, model)
        return own if fallback.reports_price is not False else replace(own, reports_price=False)

    async def _ask_fallback(self, request: AgentRequest, call: Call) -> Reply:
        # A model's name means nothing to another vendor.
        async with call.slot(self._name):
            can = capabilities_of(self._fallback)
            own = replace(request, model=None).held(json_schema=can.json_schema)
            reply = await self._fallback.ask(own, call.passed_to(self._name))
        return replace(reply, agent=reply.agent or self._name)


def _earlier_quota(first: AgentQuota | AgentAuth, second: AgentQuota) -> AgentQuota:
    """Returns the quota that resets first; one without a time is not waited for."""
    if not isinstance(first, AgentQuota) or first.until is None:
        return second
    return first if second.until is None or first.until < second.until else second


def _sum(refused: Usage | None, usage: Usage | None) -> Usage | None:
    """Adds the cost of the refused call; an unknown cost makes the sum unknown."""
    if refused is None or usage is None:
        return None
    if refused == FREE:
        return usage
    sums: dict[str, Any] = {}
    for name in USAGE_AMOUNTS:
        one, two = getattr(refused, name), getattr(usage, name)
        sums[name] = None if one is None or two is None else one + two
    return replace(usage, **sums)
