"""Makes the agents the settings name, and those that need no settings, by the kinds there are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from signoff import plugins
from signoff.agents.auto import Candidate
from signoff.agents.base import Health, health_of, models_of
from signoff.agents.kinds import WITHOUT_SETTINGS
from signoff.app.settings import AgentSettings
from signoff.core.effects import AgentRequest, Reply
from signoff.errors import AgentBadRequest, ConfigError
from signoff.remedies import Resume
from signoff.runtime.agent_limits import AgentLimits
from signoff.runtime.ports import (
    Agent,
    Call,
    Capabilities,
    capabilities_for,
    capabilities_of,
)
from signoff.runtime.services import Backoff


def build_agents(settings: Mapping[str, AgentSettings]) -> dict[str, Agent]:
    """Returns an agent for every name; each is made when it is first asked."""
    known = known_agents(settings)
    made: dict[str, Agent] = {}
    for name in known:
        made[name] = LazyAgent(partial(build_agent, name, known, made))
    return made


def known_agents(settings: Mapping[str, AgentSettings]) -> dict[str, AgentSettings]:
    """Returns the settings of every agent: the configured ones first, then those always there."""
    own = {name: AgentSettings(name) for name in WITHOUT_SETTINGS if name not in settings}
    return {**settings, **own}


def build_agent(
    name: str, known: Mapping[str, AgentSettings], made: Mapping[str, Agent] | None = None
) -> Agent:
    """Makes one agent; raises `ConfigError` when its kind or options do not fit.

    `made` are the others, for agents that pass on what they are asked.
    """
    settings = known[name]
    others = {} if made is None else made
    factory = _factory(name, settings.kind)
    options = dict(settings.options)
    if capabilities_of(factory).needs_agents:
        options["agents"] = dict(_candidates(name, known, others))
    try:
        agent: Agent = factory(**options)
    except (TypeError, ConfigError) as error:
        raise ConfigError(f"agents.{name}: {error}") from error
    if capabilities_of(agent).answered_by_human:
        return agent
    return _with_fallback(name, known, others, _priced(agent, settings))


def agent_limits(settings: Mapping[str, AgentSettings]) -> dict[str, AgentLimits]:
    """Returns how hard each agent may be worked, where the settings say so."""
    return {
        name: AgentLimits(
            each.concurrency,
            each.rate.calls if each.rate else None,
            each.rate.seconds if each.rate else 60.0,
            attempts=_attempts_in_all(name, settings),
        )
        for name, each in settings.items()
        if (each.concurrency, each.rate, each.retries, each.fallback) != (None,) * 4
    }


class LazyAgent:
    """Stands for an agent until it is asked: unused ones need neither client nor key."""

    def __init__(self, make: partial[Agent]) -> None:
        self._make = make
        self._agent: Agent | None = None

    @property
    def capabilities(self) -> Capabilities:
        """What the agent can do; for one that cannot be made, the call itself raises why."""
        try:
            return capabilities_of(self._made())
        except AgentBadRequest:
            return Capabilities()

    async def capabilities_for(self, model: str | None) -> Capabilities:
        """Returns what the agent can do with a model."""
        return await capabilities_for(self._made(), model)

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        """Makes the agent, the first time, and asks it."""
        return await self._made().ask(request, call)

    async def health(self) -> Health:
        """Makes the agent and asks how it is."""
        return await health_of(self._made())

    async def models(self) -> list[str]:
        """Makes the agent and lists its models."""
        return await models_of(self._made())

    def _made(self) -> Agent:
        if self._agent is None:
            try:
                self._agent = self._make()
            except ConfigError as error:
                # The run fails here with this reason, and goes on here once it is mended.
                raise AgentBadRequest(str(error), remedy=error.remedies) from error
        return self._agent


def _factory(name: str, kind: str) -> plugins.AgentKind:
    if ":" in kind:
        return plugins.load(kind)  # type: ignore[no-any-return]  # whatever the user names
    # Built-in kinds are looked up without a search through every installed package.
    place = plugins.AGENT_KINDS.get(kind) or plugins.agent_kinds().get(kind)
    if place is None:
        listed = ", ".join(sorted(plugins.agent_kinds()))
        raise ConfigError(
            f"agents.{name}: unknown kind {kind!r} (kinds: {listed}; or package.module:factory)"
        )
    return plugins.load(place)  # type: ignore[no-any-return]  # as the table says


def _candidates(
    name: str, known: Mapping[str, AgentSettings], made: Mapping[str, Agent]
) -> Iterator[tuple[str, Candidate]]:
    for other, agent in made.items():
        settings = known[other]
        if other != name:
            model = settings.options.get("model")
            # Nothing was said about an agent that is there anyway.
            bare = settings == AgentSettings(other)
            yield other, Candidate(other, agent, model, configured=not bare)


def _priced(agent: Agent, settings: AgentSettings) -> Agent:
    from signoff.agents.pricing import Price, Priced, Tariff

    own = settings.price
    declared = capabilities_of(agent)
    if own is None and declared.needs_agents:
        # Whoever it passes the request on to puts a price on it.
        return agent
    options: Mapping[str, Any] = settings.options
    tariff = Tariff(
        model=options.get("model"),
        free=declared.free,
        own=Price(own["in"], own["out"]) if own else None,
        other_server="base_url" in options,
    )
    return Priced(agent, tariff)


def _with_fallback(
    name: str, known: Mapping[str, AgentSettings], made: Mapping[str, Agent], agent: Agent
) -> Agent:
    from signoff.agents.fallback import WithFallback

    other = known[name].fallback
    if other is None:
        return agent
    _check_chain(name, known)
    if made and capabilities_of(made[other]).answered_by_human:
        raise ConfigError(
            f"agents.{name}.fallback: {other!r} is a human and cannot be a fallback; when the "
            "agent fails, resume the run with that agent instead",
            remedy=Resume(agent=name, instead=other),
        )
    return WithFallback(agent, made[other], name=other, attempts=_attempts(known[name]))


def _check_chain(name: str, known: Mapping[str, AgentSettings]) -> None:
    seen = [name]
    while (other := known[seen[-1]].fallback) is not None:
        if other not in known:
            listed = ", ".join(known)
            raise ConfigError(
                f"agents.{seen[-1]}.fallback: unknown agent {other!r} (agents: {listed})"
            )
        if other in seen:
            circle = " -> ".join([*seen, other])
            raise ConfigError(f"agents.{name}.fallback: the fallbacks form a cycle ({circle})")
        seen.append(other)


def _attempts(settings: AgentSettings) -> int:
    return Backoff().attempts if settings.retries is None else settings.retries + 1


def _attempts_in_all(name: str, settings: Mapping[str, AgentSettings]) -> int | None:
    """Returns an agent's own attempts and those of everybody who may stand in for it."""
    if settings[name].retries is None and settings[name].fallback is None:
        return None
    attempts, seen, at = 0, set[str](), name
    while at not in seen:
        seen.add(at)
        each = settings.get(at) or AgentSettings(at)
        attempts += _attempts(each)
        at = each.fallback or at
    return attempts
