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
from signoff.remedies import CheckSetup, PassOption

Ask = tuple[str, str | None]
"""An agent that a run asks, and the model that its step names."""


def find_not_ready(
    settings: Mapping[str, AgentSettings], asks: Iterable[Ask], root: Path, *, quick: bool
) -> dict[str, Health]:
    """Returns the agents that could not answer now, with the model if a step names one.

    A quick check does not ask programs for their version, which takes some of them seconds. An
    agent with a fallback that is ready can be asked, and so can one whose check took too long.
    Unknown agents are left out.
    """
    known = known_agents(settings)
    chains = {_label(ask): list(_chain(known, ask)) for ask in asks if ask[0] in known}
    if not chains:
        return {}
    checked = {_label(ask): ask for chain in chains.values() for ask in chain}
    agents = {label: _agent(known, ask, root) for label, ask in checked.items()}
    health = check_some(agents, quick=quick)
    return {
        label: health[label]
        for label, chain in chains.items()
        if not any(health[_label(ask)].ready or health[_label(ask)].timed_out for ask in chain)
    }


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
        f"{name} is not ready: {describe(each)}" for name, each in not_ready.items()
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
    name, model = ask
    return f"{name} with the model {model}" if model else name


def _chain(known: Mapping[str, AgentSettings], ask: Ask) -> Iterator[Ask]:
    """Yields an agent and its fallbacks, which are asked without the name of a model."""
    yield ask
    seen, at = {ask[0]}, known[ask[0]].fallback
    while at is not None and at in known and at not in seen:
        yield at, None
        seen.add(at)
        at = known[at].fallback


def _agent(known: Mapping[str, AgentSettings], ask: Ask, root: Path) -> object:
    """Returns the agent as the step asks it: its health then covers the model of the step."""
    name, model = ask
    own = known[name]
    factory = known_factory(name, own, root) if model is not None else None
    if factory is not None and "model" in (option_names(factory) or ()):
        own = replace(own, options={**own.options, "model": model})
    return build_agents({**known, name: replace(own, fallback=None)})[name]
