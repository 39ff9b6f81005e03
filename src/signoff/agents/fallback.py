"""Somebody who answers when an agent cannot.

An agent that is out of quota or not logged in is stood in for at once. One that fails in
passing is given all its attempts first; the engine counts them and goes on counting with
the one that stands in.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from signoff.agents.base import Health, health_of, models_of
from signoff.core.effects import AgentRequest, Reply
from signoff.core.spend import Usage
from signoff.errors import AgentAuth, AgentError, AgentQuota
from signoff.runtime.effect_errors import usage_of, with_usage
from signoff.runtime.ports import (
    Agent,
    Call,
    Capabilities,
    capabilities_for,
    capabilities_of,
)

N = TypeVar("N", int, float)


class WithFallback:
    """Asks one agent, and another one when the first cannot answer."""

    def __init__(self, agent: Agent, other: Agent, *, name: str, attempts: int) -> None:
        """Takes who stands in, its name, and after how many attempts it does."""
        self._agent = agent
        self._other = other
        self._name = name
        self._attempts = attempts

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Answers, and says who did when it was not the agent itself."""
        if call.attempt > self._attempts:
            call.emit(f"it failed {self._attempts} times; {self._name} answers instead\n")
            return await self._stand_in(request, _later(call, self._attempts))
        try:
            return await self._agent.ask(request, call)
        except (AgentQuota, AgentAuth) as error:
            call.emit(f"{error}; {self._name} answers instead\n")
            reason = error
        try:
            reply = await self._stand_in(request, call)
        except AgentQuota as error:
            raise _sooner(reason, error) from error
        except AgentError as error:
            raise with_usage(error, _sum(usage_of(reason), usage_of(error))) from error.__cause__
        return replace(reply, usage=_sum(usage_of(reason), reply.usage))

    @property
    def capabilities(self) -> Capabilities:
        """What the agent itself can do."""
        return capabilities_of(self._agent)

    async def capabilities_for(self, model: str | None) -> Capabilities:
        """Returns the agent's own; the cost is known only when it is known for both."""
        own = await capabilities_for(self._agent, model)
        other = await capabilities_for(self._other, model)
        return own if other.reports_price is not False else replace(own, reports_price=False)

    async def health(self) -> Health:
        """Looks at the agent itself: who stands in has a name of its own."""
        return await health_of(self._agent)

    async def models(self) -> list[str]:
        """Lists the agent's own models."""
        return await models_of(self._agent)

    async def _stand_in(self, request: AgentRequest, call: Call) -> Reply:
        # A model's name means nothing to another vendor.
        async with call.slot(self._name):
            reply = await self._other.ask(replace(request, model=None), call.passed_to(self._name))
        return replace(reply, agent=reply.agent or self._name)


def _later(call: Call, attempts: int) -> Call:
    return call._replace(attempt=call.attempt - attempts)


def _sooner(first: AgentQuota | AgentAuth, second: AgentQuota) -> AgentQuota:
    """Returns whichever quota comes back first; one that does not say is not waited for."""
    if not isinstance(first, AgentQuota) or first.until is None:
        return second
    return first if second.until is None or first.until < second.until else second


def _sum(lost: Usage | None, usage: Usage | None) -> Usage | None:
    """Adds what a refused call cost, which is nothing unless it says otherwise."""
    if lost is None or usage is None:
        return None
    return replace(
        usage,
        tokens_in=_plus(lost.tokens_in, usage.tokens_in),
        tokens_out=_plus(lost.tokens_out, usage.tokens_out),
        usd=_plus(lost.usd, usage.usd),
    )


def _plus(one: N | None, two: N | None) -> N | None:
    return None if one is None or two is None else one + two
