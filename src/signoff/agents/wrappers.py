"""What an agent gets around it: a fallback that answers when it cannot, and the price of its calls.

A fallback replaces an agent that is out of quota or not logged in at once. An agent with transient
errors gets all its attempts first; the engine counts them and continues counting with the fallback.

The price list is a data file; an agent's own `price:` setting overrides it. A model without either
has an unknown price, and the cost of its calls is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from signoff.agents.base import Health, health_of
from signoff.core.effects import AgentRequest, Reply
from signoff.core.errors import AgentAuth, AgentError, AgentQuota
from signoff.core.spend import USAGE_AMOUNTS, Usage
from signoff.runtime.effect_errors import FREE as FREE_USAGE
from signoff.runtime.effect_errors import usage_of, with_usage
from signoff.runtime.ports import Agent, Call, Capabilities, capabilities_for, capabilities_of


class AgentWrapper:
    """Reports what another agent does; a subclass passes the requests on."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    @property
    def capabilities(self) -> Capabilities:
        """What the agent can do."""
        return capabilities_of(self._agent)

    async def health(self) -> Health:
        """Returns the agent's health."""
        return await health_of(self._agent)


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
        # Only these two: a bad request would be as bad for the fallback, and what is busy passes.
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
    if refused == FREE_USAGE:
        return usage
    pairs = {name: (getattr(refused, name), getattr(usage, name)) for name in USAGE_AMOUNTS}
    sums = {name: None if None in pair else sum(pair) for name, pair in pairs.items()}
    return replace(usage, **sums)


_DATED = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|latest|preview(?:-[\d-]+)?)$")
"""The suffix that vendors give to one edition of a model."""


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens."""

    tokens_in: float
    tokens_out: float
    cached: float | None = None
    """For input read from the prompt cache; the full price of input if unknown."""
    cache_write: float | None = None
    """For input written to it; the price of other input where writing costs nothing extra."""

    @classmethod
    def from_json(cls, data: Mapping[str, float]) -> Price:
        """Reads an entry of the price list, or an agent's `price:`."""
        return cls(data["in"], data["out"], data.get("cached"), data.get("cache_write"))

    def cost(self, usage: Usage) -> float | None:
        """Returns the cost of a call, or None when its tokens are unknown."""
        # A free model costs nothing, even if the number of its tokens is not known.
        if not self.tokens_in and not self.tokens_out:
            return 0.0
        if usage.tokens_in is None or usage.tokens_out is None:
            return None
        # A wrong report must not make the rest negative.
        read = min(usage.tokens_cached or 0, usage.tokens_in)
        written = min(usage.tokens_cache_write or 0, usage.tokens_in - read)
        parts = [
            (usage.tokens_in - read - written, self.tokens_in),
            (read, self.tokens_in if self.cached is None else self.cached),
            (written, self.tokens_in if self.cache_write is None else self.cache_write),
            (usage.tokens_out, self.tokens_out),
        ]
        return sum(tokens * price for tokens, price in parts) / 1_000_000


FREE = Price(0.0, 0.0)


def list_price(model: str | None) -> Price | None:
    """Returns a model's list price; a dated edition costs the same as its model."""
    if model is None:
        return None
    name = model.rpartition("/")[2].lower()
    return price_list().get(name) or price_list().get(_DATED.sub("", name))


@cache
def price_list() -> Mapping[str, Price]:
    """Returns the prices that come with signoff, by model."""
    from importlib.resources import files

    from ruamel.yaml import YAML

    text = files("signoff.agents").joinpath("prices.yaml").read_text("utf-8")
    data: dict[str, Any] = YAML(typ="safe", pure=True).load(text)
    return {name: Price.from_json(each) for name, each in data["models"].items()}


@dataclass(frozen=True)
class Tariff:
    """How the calls of one agent are priced."""

    model: str | None = None
    """The model it uses unless a request names another."""
    free: bool = False
    """Whether its calls are not billed."""
    own: Price | None = None
    """The price in its settings, which overrides the list."""
    other_server: bool = False
    """Whether calls go to another server than the vendor's, where the list does not apply."""

    def price(self, model: str | None) -> Price | None:
        """Returns the price of a call to a model, or None when it is unknown."""
        if self.own is not None:
            return self.own
        if self.free:
            # Ollama's cloud models pass through the local server but are billed.
            return None if (model or self.model or "").endswith("cloud") else FREE
        return None if self.other_server else list_price(model or self.model)


class PricedAgent(AgentWrapper):
    """Wraps an agent and adds the price when the agent reports only tokens."""

    def __init__(self, agent: Agent, tariff: Tariff) -> None:
        super().__init__(agent)
        self._tariff = tariff

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Asks the agent and prices its answers and its failed calls."""
        try:
            reply = await self._agent.ask(request, call)
        except AgentError as error:
            usage = getattr(error, "usage", None)
            if isinstance(usage, Usage):
                with_usage(error, self._with_price(usage, request))
            raise
        return replace(reply, usage=self._with_price(reply.usage, request))

    @property
    def capabilities(self) -> Capabilities:
        """The agent's capabilities, with the price of its default model."""
        return self._with_price_known(capabilities_of(self._agent), None)

    async def capabilities_for(self, model: str | None) -> Capabilities:
        """Returns the capabilities for a model; a price may be reported or listed."""
        return self._with_price_known(await capabilities_for(self._agent, model), model)

    def _with_price_known(self, own: Capabilities, model: str | None) -> Capabilities:
        has_price = bool(own.reports_price) or self._tariff.price(model) is not None
        return replace(own, reports_price=has_price)

    def _with_price(self, usage: Usage | None, request: AgentRequest) -> Usage | None:
        reported = (usage or Usage()).cleaned()
        if reported.usd is not None:
            return reported
        price = self._tariff.price(reported.model or request.model)
        usd = price.cost(reported) if price is not None else None
        return replace(reported, usd=usd) if usd is not None else usage
