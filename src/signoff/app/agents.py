"""Makes the agents the settings name, by the kinds the plugins know."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from signoff import plugins
from signoff.app.settings import AgentSettings
from signoff.core.effects import AgentRequest, Reply
from signoff.errors import AgentBadRequest, ConfigError
from signoff.runtime.agent_limits import AgentLimits
from signoff.runtime.ports import Agent, Call


def build_agents(settings: Mapping[str, AgentSettings]) -> dict[str, Agent]:
    """Returns an agent for every name; each is made when it is first asked."""
    return {name: _Later(partial(build_agent, name, each)) for name, each in settings.items()}


def build_agent(name: str, settings: AgentSettings) -> Agent:
    """Makes one agent; raises `ConfigError` when its kind or options do not fit."""
    kind = settings.kind
    if ":" not in kind:
        known = plugins.agent_kinds()
        if kind not in known:
            listed = ", ".join(sorted(known)) or "none in this version"
            raise ConfigError(
                f"agents.{name}: there is no kind {kind!r} (kinds: {listed}; "
                "or package.module:factory)"
            )
        kind = known[kind]
    try:
        made: Agent = plugins.load(kind)(**settings.options)
    except TypeError as error:
        raise ConfigError(f"agents.{name}: {error}") from error
    return made


def agent_limits(settings: Mapping[str, AgentSettings]) -> dict[str, AgentLimits]:
    """Returns how hard each agent may be worked, where the settings say so."""
    return {
        name: AgentLimits(
            each.concurrency,
            each.rate.calls if each.rate else None,
            each.rate.seconds if each.rate else 60.0,
        )
        for name, each in settings.items()
        if each.concurrency is not None or each.rate is not None
    }


class _Later:
    """Stands for an agent until it is asked: unused ones need neither client nor key."""

    def __init__(self, make: partial[Agent]) -> None:
        self._make = make
        self._agent: Agent | None = None

    @property
    def by_person(self) -> bool:
        """Whether its answers come through the inbox; one that cannot be made says so later."""
        try:
            return bool(getattr(self._made(), "by_person", False))
        except AgentBadRequest:
            return False

    async def ask(self, request: AgentRequest, call: Call) -> Reply:
        return await self._made().ask(request, call)

    def _made(self) -> Agent:
        if self._agent is None:
            try:
                self._agent = self._make()
            except ConfigError as error:
                # The run fails here with this reason, and goes on here once it is mended.
                raise AgentBadRequest(str(error)) from error
        return self._agent
