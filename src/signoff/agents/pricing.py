"""The cost of calls, for agents that report tokens but no price.

The price list is a data file; an agent's own `price:` setting overrides it. A model without
either has an unknown price, and the cost of its calls is unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from signoff.agents.base import AgentWrapper
from signoff.core.effects import AgentRequest, Reply
from signoff.core.spend import Usage
from signoff.errors import AgentError
from signoff.runtime.effect_errors import with_usage
from signoff.runtime.ports import Agent, Call, Capabilities, capabilities_for, capabilities_of

MILLION = 1_000_000

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
        return sum(tokens * price for tokens, price in parts) / MILLION


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


class Priced(AgentWrapper):
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
