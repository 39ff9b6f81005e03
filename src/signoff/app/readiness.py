"""Checks before a run starts whether the agents it asks can answer, at no cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from signoff.agents.base import Health
from signoff.agents.kinds import AUTO, DEFAULT_AGENT, MANUAL
from signoff.agents.options import option_names
from signoff.app.agents import build_agents, check_some, known_agents, known_factory
from signoff.app.settings import AgentSettings
from signoff.errors import ConfigError
from signoff.notation import AgentJob, Ask
from signoff.remedies import CheckSetup, PassOption
from signoff.runtime.ports import capabilities_of


def find_not_ready(
    settings: Mapping[str, AgentSettings], asks: Iterable[Ask], root: Path
) -> dict[str, Health]:
    """Returns the agents that could not do their job now, with the model if a step names one.

    An agent with a fallback that is ready can be asked, and so can one whose check took too long.
    Unknown agents are left out.
    """
    known = known_agents(settings)
    chains = {ask: list(_chain(known, ask)) for ask in asks if ask.agent in known}
    if not chains:
        return {}
    checked = {_label(ask): ask for chain in chains.values() for ask in chain}
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
    can = capabilities_of(agent)
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
    others = [f"{name}={MANUAL}" for name in named if name not in (AUTO, DEFAULT_AGENT)]
    by_hand = PassOption(option, next(iter(others), MANUAL))
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


def _chain(known: Mapping[str, AgentSettings], ask: Ask) -> Iterator[Ask]:
    """Yields an agent and its fallbacks, which are asked without the name of a model."""
    yield ask
    seen, at = {ask.agent}, known[ask.agent].fallback
    while at is not None and at in known and at not in seen:
        yield Ask(at, None, ask.job)
        seen.add(at)
        at = known[at].fallback


def _agent(known: Mapping[str, AgentSettings], ask: Ask, root: Path) -> object:
    """Returns the agent as the step asks it: its health then covers the model of the step."""
    name, model, _job = ask
    own = known[name]
    factory = known_factory(name, own, root) if model is not None else None
    if factory is not None and "model" in (option_names(factory) or ()):
        own = replace(own, options={**own.options, "model": model})
    return build_agents({**known, name: replace(own, fallback=None)})[name]
