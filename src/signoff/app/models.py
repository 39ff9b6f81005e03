"""Lists, downloads and deletes the weights of local models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from signoff.agents.weights import SMOLLM2, State, Weights, model_cache

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


@dataclass(frozen=True)
class Pulled:
    """The result of downloading a model."""

    model: ListedModel
    fetched: bool
    """False if it was installed already."""
    can_run: bool
    """Whether the runtime for local models is installed."""


def list_models(environment: Mapping[str, str]) -> list[ListedModel]:
    """Returns every model of the catalog, with its state on this machine."""
    return [_listed(each, environment) for each in model_cache(environment).catalog.values()]


async def pull_model(
    name: str,
    environment: Mapping[str, str],
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    waiting: Callable[[], None] = lambda: None,
) -> Pulled:
    """Downloads a model, unless it is installed and intact."""
    from signoff.agents.fetching import fetch

    cache = model_cache(environment)
    weights = cache.find(name)
    fetched = await fetch(cache, weights, progress=progress, waiting=waiting)
    return Pulled(_listed(weights, environment), fetched, find_spec("xllamacpp") is not None)


def remove_model(name: str, environment: Mapping[str, str]) -> tuple[ListedModel, int]:
    """Deletes a model's weights; returns the model and the bytes freed, 0 if it was missing."""
    cache = model_cache(environment)
    weights = cache.find(name)
    freed = cache.remove(weights)
    return _listed(weights, environment), freed


def _listed(weights: Weights, environment: Mapping[str, str]) -> ListedModel:
    cache = model_cache(environment)
    return ListedModel(
        weights.name,
        cache.state(weights),
        weights.size,
        weights.licence,
        weights.summary,
        cache.path(weights),
    )
