"""What calls cost, where an agent reports tokens and no money.

The price list is a data file; an agent's own `price:` is stronger. A model that is in
neither has an unknown price, and its calls an unknown cost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from signoff.agents.base import Health, health_of, models_of
from signoff.core.effects import AgentRequest, Reply
from signoff.core.spend import Usage
from signoff.errors import AgentError
from signoff.runtime.effect_errors import with_usage
from signoff.runtime.ports import (
    Agent,
    Call,
    Capabilities,
    capabilities_for,
    capabilities_of,
)

MILLION = 1_000_000

_DATED = re.compile(r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|latest|preview(?:-[\d-]+)?)$")
"""How vendors end the name of one edition of a model."""


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens."""

    tokens_in: float
    tokens_out: float

    def of(self, usage: Usage) -> float | None:
        """Returns what a call cost, or None when its tokens are not known."""
        if not self.tokens_in and not self.tokens_out:
            return 0.0
        if usage.tokens_in is None or usage.tokens_out is None:
            return None
        whole = usage.tokens_in * self.tokens_in + usage.tokens_out * self.tokens_out
        return whole / MILLION


FREE = Price(0.0, 0.0)


@dataclass(frozen=True)
class PriceList:
    """Everything the data file says."""

    models: Mapping[str, Price]

    def of_model(self, model: str | None) -> Price | None:
        """Returns a model's price; an edition with a date costs what the model does."""
        if model is None:
            return None
        name = model.rpartition("/")[2].lower()
        return self.models.get(name) or self.models.get(_DATED.sub("", name))


@cache
def price_list() -> PriceList:
    """Returns the list that comes with signoff."""
    from importlib.resources import files

    from ruamel.yaml import YAML

    text = files("signoff.agents").joinpath("prices.yaml").read_text("utf-8")
    data: dict[str, Any] = YAML(typ="safe", pure=True).load(text)
    models = {name: Price(each["in"], each["out"]) for name, each in data["models"].items()}
    return PriceList(models)


@dataclass(frozen=True)
class Tariff:
    """What is known about the price of one agent's calls."""

    model: str | None = None
    """The one it uses unless a request names another."""
    free: bool = False
    """Whether its calls are not billed."""
    own: Price | None = None
    """What its settings say; stronger than the list."""
    elsewhere: bool = False
    """Whether it is sent to another address than the vendor's, where the list says nothing."""

    def price(self, model: str | None) -> Price | None:
        """Returns the price of a call to a model; None when nobody knows it."""
        if self.own is not None:
            return self.own
        if self.free:
            # Models that a local server only passes on are billed by their vendor.
            return None if (model or self.model or "").endswith("cloud") else FREE
        return None if self.elsewhere else price_list().of_model(model or self.model)


class Priced:
    """Answers as another agent does, and adds the money when only tokens are reported."""

    def __init__(self, agent: Agent, tariff: Tariff) -> None:
        self._agent = agent
        self._tariff = tariff

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Asks, and puts a price on answers and on failed calls alike."""
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
        """What the agent can do, with its default model's price."""
        return self._with_tariff(capabilities_of(self._agent), None)

    async def capabilities_for(self, model: str | None) -> Capabilities:
        """Returns what the agent can do with a model; its cost is known by report or by price."""
        return self._with_tariff(await capabilities_for(self._agent, model), model)

    def _with_tariff(self, own: Capabilities, model: str | None) -> Capabilities:
        known = bool(own.reports_price) or self._tariff.price(model) is not None
        return replace(own, reports_price=known)

    async def health(self) -> Health:
        """Looks at the agent itself."""
        return await health_of(self._agent)

    async def models(self) -> list[str]:
        """Lists the agent's models."""
        return await models_of(self._agent)

    def _with_price(self, usage: Usage | None, request: AgentRequest) -> Usage | None:
        if usage is not None and usage.usd is not None:
            return usage
        reported = usage or Usage()
        price = self._tariff.price(reported.model or request.model)
        usd = price.of(reported) if price is not None else None
        return replace(reported, usd=usd) if usd is not None else usage
