"""Builds agents from settings, including those that need none, and checks settings and health."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signoff import plugins
from signoff.agents import kinds
from signoff.agents.base import Health, health_of, option_names
from signoff.app.settings.settings import (
    AgentSettings,
    Settings,
    origin_of,
    unknown_option_problems,
)
from signoff.core.effects import AgentRequest, Reply
from signoff.core.errors import AgentBadRequest, ConfigError, Problem
from signoff.core.remedies import CheckSetup, PassOption, Resume
from signoff.documents.python_files import extend_import_path, make_importable
from signoff.notation import AgentJob, Ask
from signoff.runtime import ports

# What only asks agents is imported where it is used: checking a flow asks none, and need not
# wait for asyncio.
if TYPE_CHECKING:
    from signoff.agents.auto import Candidate


PROGRAM_KINDS = frozenset({*kinds.PROGRAMS, *kinds.USER_PROGRAMS})
PROGRAMS_AT_ONCE = 8
"""Processes of one agent: forty constraints would start forty at once."""


def build_agents(settings: Mapping[str, AgentSettings]) -> dict[str, LazyAgent]:
    """Returns an agent for every name; each is built when it is first asked."""
    configs = known_agents(settings)
    agents: dict[str, LazyAgent] = {}
    for name in configs:
        agents[name] = LazyAgent(partial(build_agent, name, configs, agents))
    return agents


def known_agents(settings: Mapping[str, AgentSettings]) -> dict[str, AgentSettings]:
    """Returns the settings of every agent: configured ones first, then those without settings."""
    own = {name: AgentSettings(name) for name in kinds.WITHOUT_SETTINGS if name not in settings}
    return {**settings, **own}


def build_agent(
    name: str, configs: Mapping[str, AgentSettings], agents: Mapping[str, ports.Agent]
) -> ports.Agent:
    """Builds one agent; raises `ConfigError` if its kind or options are invalid.

    `agents` are the others, for agents that forward requests.
    """
    settings = configs[name]
    factory = plugins.factory("agents", f"agents.{name}", settings.kind)
    # Only agents that forward requests get the others, so that a plug-in cannot reach agents that
    # it was not named for.
    options = settings.located(ports.capabilities_of(factory).path_options)
    if ports.capabilities_of(factory).needs_agents:
        options["agents"] = dict(_candidates(name, configs, agents))
    try:
        agent: ports.Agent = factory(**options)
    except (TypeError, ConfigError) as error:
        # Python's own message begins with the name of a method, which says nothing to users.
        what = str(error).partition("__init__() ")[2] or error
        raise ConfigError(f"agents.{name}: {what}") from error
    # What a human answers costs nothing that is billed, and waits as long as it takes: it needs
    # neither a price nor a fallback.
    if ports.capabilities_of(agent).answered_by_human:
        return agent
    return _with_fallback(name, configs, agents, _priced(agent, settings))


def agent_limits(settings: Mapping[str, AgentSettings]) -> dict[str, ports.AgentLimits]:
    """Returns the limits of agents that have some."""
    known = known_agents(settings)
    found = {name: _limits(name, known) for name in known}
    return {name: limits for name, limits in found.items() if limits != ports.AgentLimits()}


def _limits(name: str, known: Mapping[str, AgentSettings]) -> ports.AgentLimits:
    own = known[name]
    limits = own.limits
    if limits.concurrency is None and own.kind in PROGRAM_KINDS:
        # Each call is a process.
        limits = replace(limits, concurrency=PROGRAMS_AT_ONCE)
    if own.fallback is None:
        return limits
    # The gate counts the attempts of those that answer in its place too.
    attempts = sum(_attempts(known[each]) for each in _fallbacks(name, known))
    return replace(limits, retries=attempts - 1)


class LazyAgent:
    """Builds its agent on first use: unused agents need neither a client nor a key."""

    def __init__(self, make: partial[ports.Agent]) -> None:
        self._make = make
        self._agent: ports.Agent | None = None
        self.known_health: Health | None = None
        """The result of an earlier health check, which is then not repeated."""

    @property
    def capabilities(self) -> ports.Capabilities:
        """What the agent can do; empty if it cannot be built, which the call will report."""
        try:
            return ports.capabilities_of(self._build())
        except AgentBadRequest:
            return ports.Capabilities()

    async def capabilities_for(self, model: str | None) -> ports.Capabilities:
        """Returns what the agent can do with a model."""
        return await ports.capabilities_for(self._build(), model)

    async def ask(self, request: AgentRequest, call: ports.Call) -> Reply:
        """Asks the agent."""
        return await self._build().ask(request, call)

    async def health(self) -> Health:
        """Returns the agent's health."""
        return self.known_health or await health_of(self._build())

    def _build(self) -> ports.Agent:
        if self._agent is None:
            try:
                self._agent = self._make()
            except ConfigError as error:
                # As an agent error it fails the run at this step, where it can be resumed after
                # the settings are fixed.
                raise AgentBadRequest(str(error), remedy=error.remedies) from error
        return self._agent


def _candidates(
    name: str, configs: Mapping[str, AgentSettings], agents: Mapping[str, ports.Agent]
) -> Iterator[tuple[str, Candidate]]:
    from signoff.agents.auto import Candidate

    for other, agent in agents.items():
        settings = configs[other]
        if other != name:
            # An agent that needs no settings counts as configured only if it has some.
            bare = settings == AgentSettings(other)
            yield other, Candidate(other, agent, configured=not bare)


def _priced(agent: ports.Agent, settings: AgentSettings) -> ports.Agent:
    from signoff.agents.wrappers import Price, PricedAgent, Tariff

    own = settings.price
    declared = ports.capabilities_of(agent)
    if own is None and declared.needs_agents:
        # The agent it forwards the request to reports the price.
        return agent
    options: Mapping[str, Any] = settings.options
    tariff = Tariff(
        model=options.get("model"),
        free=declared.free,
        own=Price.from_json(own) if own else None,
        other_server="base_url" in options,
    )
    return PricedAgent(agent, tariff)


def _with_fallback(
    name: str,
    configs: Mapping[str, AgentSettings],
    agents: Mapping[str, ports.Agent],
    agent: ports.Agent,
) -> ports.Agent:
    from signoff.agents.wrappers import WithFallback

    other = configs[name].fallback
    if other is None:
        return agent
    # A human in the chain would turn a busy agent into a wait of days that nobody has asked for.
    _check_chain(name, configs)
    if ports.capabilities_of(agents[other]).answered_by_human:
        raise ConfigError(
            f"agents.{name}.fallback: {other!r} is a human and cannot be a fallback; when the "
            "agent fails, resume the run with that agent instead",
            remedy=Resume(agent=name, instead=other),
        )
    if (
        ports.capabilities_of(agents[other]).deterministic
        and not ports.capabilities_of(agent).deterministic
    ):
        raise ConfigError(
            f"agents.{name}.fallback: {other!r} only checks and cannot answer in its place"
        )
    return WithFallback(agent, agents[other], name=other, attempts=_attempts(configs[name]))


def _check_chain(name: str, configs: Mapping[str, AgentSettings]) -> None:
    chain = list(_fallbacks(name, configs))
    other = configs[chain[-1]].fallback
    if other is not None and other not in configs:
        what = f"unknown agent {other!r} (agents: {', '.join(configs)})"
        raise ConfigError(f"agents.{chain[-1]}.fallback: {what}")
    if other is not None:
        circle = " -> ".join([*chain, other])
        raise ConfigError(f"agents.{name}.fallback: the fallbacks form a cycle ({circle})")


def _fallbacks(name: str, configs: Mapping[str, AgentSettings]) -> Iterator[str]:
    """Yields an agent and those that answer in its place, up to an unknown one or a cycle."""
    seen = set[str]()
    while name in configs and name not in seen:
        yield name
        seen.add(name)
        name = configs[name].fallback or name


def _attempts(settings: AgentSettings) -> int:
    # Imported here because it brings the engine along, which checking a flow does not need.
    from signoff.runtime.services import Backoff

    retries = settings.limits.retries
    return Backoff().attempts if retries is None else retries + 1


def check_agents(settings: Mapping[str, AgentSettings]) -> dict[str, Health]:
    """Returns the health of every agent, all checked at once and for a few seconds at most."""
    agents = build_agents(settings)
    # Agents that forward requests report the health of the others, so those are checked first
    # and only once.
    forwarding = {n: agent for n, agent in agents.items() if agent.capabilities.needs_agents}
    direct = {n: agent for n, agent in agents.items() if n not in forwarding}
    for group in (direct, forwarding):
        for name, health in check_some(group).items():
            agents[name].known_health = health
    return {name: agent.known_health for name, agent in agents.items() if agent.known_health}


def check_some(agents: Mapping[str, object]) -> dict[str, Health]:
    """Returns the health of some agents, all checked at once and for a few seconds at most."""
    import asyncio

    from signoff.agents.auto import check_health

    async def check() -> list[Health]:
        return await asyncio.gather(*map(check_health, agents.values()))

    return dict(zip(agents, asyncio.run(check()), strict=True))


def unknown_kinds(settings: Settings) -> Iterator[Problem]:
    """Yields a problem for each agent of an unknown kind, with the line of its setting."""
    for name, agent in settings.agents.items():
        if ":" not in agent.kind and plugins.path_of("agents", agent.kind) is None:
            what = f"agents.{name}: unknown kind {agent.kind!r}"
            valid = f"kinds: {', '.join(sorted(plugins.paths('agents')))}"
            remedy = f"{valid}; or package.module:factory"
            yield Problem(_agent_origin(settings, name), what, remedy)


def missing_needs(settings: Settings, environment: Mapping[str, str]) -> Iterator[str]:
    """Yields what the agents of the settings lack on this machine, as far as that is quick to see.

    Definitions are checked where no agent is installed, so this is no problem of the settings.
    """
    for name, agent in settings.agents.items():
        origin = _agent_origin(settings, name)
        if variable := kinds.missing_key(agent.kind, agent.options, environment):
            yield f"{origin}: agents.{name} needs a key, but {variable} is not set"
        argv = agent.options.get("argv")
        program = argv[0] if isinstance(argv, list) and argv else None
        places = (
            [program, str(Path(agent.folder or "", program))] if isinstance(program, str) else []
        )
        if places and not any(map(shutil.which, places)):
            yield f"{origin}: agents.{name} runs {program}, which is not on PATH"


def unknown_options(settings: Settings, root: Path) -> Iterator[Problem]:
    """Yields a problem for each option that an agent's kind does not take, with its line."""
    for name, agent in settings.agents.items():
        factory = known_factory(name, agent, root) if agent.options else None
        names = option_names(factory) if factory is not None else None
        if names is not None:
            # An agent that forwards requests is given the others; no setting can name them.
            forwards = ports.capabilities_of(factory).needs_agents
            known = [each for each in names if not (each == "agents" and forwards)]
            yield from unknown_option_problems(settings, f"agents.{name}", agent.options, known)


def known_factory(name: str, agent: AgentSettings, root: Path) -> plugins.AgentKind | None:
    """Returns what builds an agent; None if its kind is unknown or cannot be imported."""
    if ":" in agent.kind:
        make_importable([root])
    try:
        return plugins.factory("agents", f"agents.{name}", agent.kind)
    except Exception:  # noqa: BLE001  # reported by `unknown_kinds` and `import_errors`
        return None


def roles_without_agent(settings: Settings) -> list[Problem]:
    """Returns a problem for each role whose agent does not exist, with the line of its setting."""
    known = known_agents(settings.agents)
    listed = f"name one of: {', '.join(known)}"
    return [
        Problem(
            origin_of(settings, f"roles.{role}"),
            f"roles.{role}: unknown agent {name!r}",
            listed,
        )
        for role, name in settings.roles.items()
        if name not in known
    ]


def import_errors(settings: Settings, root: Path) -> Iterator[str]:
    """Yields an error for each agent whose own code cannot be imported."""
    for name, agent in settings.agents.items():
        # Only a check's `function` is Python code; other kinds may use that option differently.
        is_check = ports.capabilities_of(known_factory(name, agent, root)).deterministic
        key = "function" if is_check and "function" in agent.options else "kind"
        code = str(agent.options.get(key, agent.kind))
        if ":" not in code:
            continue
        make_importable([root])
        extend_import_path(code)
        try:
            plugins.load(code)
        except Exception as error:  # noqa: BLE001  # the user's module may raise anything
            yield f"{_agent_origin(settings, name, key)}: agents.{name}: {error}"


def _agent_origin(settings: Settings, agent: str, key: str = "kind") -> str:
    return origin_of(settings, f"agents.{agent}.{key}", f"agents.{agent}")


def find_not_ready(
    settings: Mapping[str, AgentSettings], asks: Iterable[Ask], root: Path
) -> dict[str, Health]:
    """Returns the agents that could not do their job now, with the model if a step names one.

    An agent with a fallback that is ready can be asked, and so can one whose check took too long.
    Unknown agents are left out.
    """
    known = known_agents(settings)
    # A fallback is checked as well: if it is ready, the run does not need the agent in front of it.
    chains = {ask: _chain(known, ask) for ask in asks if ask.agent in known}
    if not chains:
        return {}
    checked = {_label(ask): ask for chain in chains.values() for ask in chain}
    # One check for each agent and model, however many steps ask it: some checks start a program.
    agents = {label: _agent(known, ask, root) for label, ask in checked.items()}
    found = check_some(agents)

    def health(ask: Ask) -> Health:
        return _unfit(ask.job, agents[_label(ask)], found[_label(ask)]) or found[_label(ask)]

    return {
        _label(ask): health(ask)
        for ask, chain in chains.items()
        if not any(health(each).ready or health(each).timed_out for each in chain)
    }


def refuse_unfit(settings: Mapping[str, AgentSettings], asks: Iterable[Ask]) -> None:
    """Raises `ConfigError` if an agent could never do what it would be asked for."""
    agents = build_agents(settings)
    known = [ask for ask in asks if ask.agent in agents]
    found = {ask.agent: _unfit(ask.job, agents[ask.agent], Health(False, "")) for ask in known}
    refuse_not_ready({name: health for name, health in found.items() if health is not None})


def _unfit(job: AgentJob, agent: object, health: Health) -> Health | None:
    """Returns why an agent can never do a job, however ready it is; None if it can."""
    can = ports.capabilities_of(agent)
    if can.deterministic and job in (AgentJob.WRITE, AgentJob.JUDGE):
        why = f"it only checks and cannot {job.value}"
        return Health(False, why, "name another agent", unfit=True)
    if not can.judges and job in (AgentJob.REVIEW, AgentJob.JUDGE):
        what = f" ({health.detail})" if health.ready else ""
        remedy = "name another agent, or let checks review"
        return Health(False, f"it is too small to {job.value}{what}", remedy, unfit=True)
    return None


def refuse_not_ready(
    not_ready: Mapping[str, Health], *, by_name: bool = True, option: str = "agent"
) -> None:
    """Raises `ConfigError` with what each agent needs, if one cannot answer.

    `by_name` tells whether a single agent can be replaced, or only all of them; `option` is the one
    that replaces them.
    """
    if not not_ready:
        return
    reasons = "; ".join(
        f"{name} {'cannot be asked' if each.unfit else 'is not ready'}: {describe(each)}"
        for name, each in not_ready.items()
    )
    remedies = dict.fromkeys(remedy for each in not_ready.values() for remedy in each.remedies)
    named = [label.split()[0] for label in not_ready if by_name]
    others = [
        f"{name}={kinds.MANUAL}" for name in named if name not in (kinds.AUTO, kinds.DEFAULT_AGENT)
    ]
    # Answering by hand is always possible, so it is offered even where nothing else can be fixed
    # now.
    by_hand = PassOption(option, next(iter(others), kinds.MANUAL))
    raise ConfigError(
        f"{reasons}. Nothing was started; fix that, name another agent, or answer by hand",
        remedy=(*remedies, by_hand, CheckSetup()),
    )


def describe(health: Health) -> str:
    """Returns why an agent is not ready, and the vendor's command that changes it."""
    if not health.remedy or health.remedy in health.detail:
        return health.detail
    return f"{health.detail} ({health.remedy})"


def _label(ask: Ask) -> str:
    name, model, _job = ask
    return f"{name} with the model {model}" if model else name


def _chain(known: Mapping[str, AgentSettings], ask: Ask) -> list[Ask]:
    """Returns an agent and its fallbacks, which are asked without the name of a model."""
    _, *others = _fallbacks(ask.agent, known)
    return [ask, *(Ask(each, None, ask.job) for each in others)]


def _agent(known: Mapping[str, AgentSettings], ask: Ask, root: Path) -> object:
    """Returns the agent as the step asks it: its health then covers the model of the step."""
    name, model, _job = ask
    own = known[name]
    factory = known_factory(name, own, root) if model is not None else None
    if factory is not None and "model" in (option_names(factory) or ()):
        own = replace(own, options={**own.options, "model": model})
    return build_agents({**known, name: replace(own, fallback=None)})[name]
