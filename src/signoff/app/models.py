"""Lists, downloads and deletes the weights of local models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from signoff.agents.weights import SMOLLM2, ModelCache, State, Weights, model_cache
from signoff.errors import AgentError, UnknownName

if TYPE_CHECKING:
    from signoff.runtime.ports import Agent

DEFAULT = SMOLLM2.name
"""The model that is downloaded if none is named."""


@dataclass(frozen=True)
class ListedModel:
    """One model of the catalog, and its state on this machine."""

    name: str
    state: State
    size: int
    """Of its file, in bytes."""
    licence: str
    summary: str
    path: Path
    """Where its file is, or would be."""


def list_models(environment: Mapping[str, str]) -> list[ListedModel]:
    """Returns every model of the catalog, with its state on this machine."""
    cache = model_cache(environment)
    return [_listed(each, cache) for each in cache.catalog.values()]


async def list_server_models(name: str, start: Path, environment: Mapping[str, str]) -> list[str]:
    """Returns the models that an agent of the project lists, such as those of its server."""
    from signoff import plugins
    from signoff.agents.base import health_of, models_of
    from signoff.app.agents import build_agents
    from signoff.app.home import expected_home
    from signoff.app.notations import compile_context
    from signoff.app.settings import load_settings

    home = expected_home(start, environment)
    settings = load_settings(home, environment)
    agents: dict[str, Agent] = {**build_agents(settings.agents)}
    if name not in agents:
        raise UnknownName("agent", name, agents)
    context = compile_context(home, settings)
    for notation in plugins.notations():
        if notation.agents:
            agents |= plugins.load(notation.agents)(context)
    try:
        return await models_of(agents[name])
    except AgentError as error:
        if hint := (await health_of(agents[name])).remedy:
            error.args = (f"{error}; {hint}",)
        raise


async def pull_model(
    name: str,
    environment: Mapping[str, str],
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    waiting: Callable[[], None] = lambda: None,
) -> tuple[ListedModel, bool]:
    """Downloads a model, unless it is installed and intact; returns it and whether it did."""
    from signoff.agents.weights import fetch

    cache = model_cache(environment)
    weights = cache.find(name)
    fetched = await fetch(cache, weights, progress=progress, waiting=waiting)
    return _listed(weights, cache), fetched


def can_run_models() -> bool:
    """Tells whether the runtime for local models is installed."""
    return find_spec("xllamacpp") is not None


def remove_model(name: str, environment: Mapping[str, str]) -> tuple[ListedModel, int]:
    """Deletes a model's weights; returns the model and the bytes freed, 0 if it was missing."""
    cache = model_cache(environment)
    weights = cache.find(name)
    freed = cache.remove(weights)
    return _listed(weights, cache), freed


def _listed(weights: Weights, cache: ModelCache) -> ListedModel:
    state, path = cache.state(weights), cache.path(weights)
    return ListedModel(weights.name, state, weights.size, weights.licence, weights.summary, path)
