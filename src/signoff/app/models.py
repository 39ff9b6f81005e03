"""What can be done about the weights of local models: list them, fetch them, delete them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from signoff.agents.weights import SMOLLM2, State, Weights, model_cache

DEFAULT = SMOLLM2.name
"""The one that is fetched when none is named."""


@dataclass(frozen=True)
class ListedModel:
    """One model of the catalogue, as it is on this machine."""

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
    """What fetching a model came to."""

    model: ListedModel
    fetched: bool
    """False when it was there already."""
    can_run: bool
    """Whether what runs it is installed."""


@dataclass(frozen=True)
class Removed:
    """What deleting a model came to."""

    model: ListedModel
    freed: int
    """Bytes; 0 when it was not there."""


def list_models(environment: Mapping[str, str]) -> list[ListedModel]:
    """Returns every model there is, with how it is on this machine."""
    return [_listed(each, environment) for each in model_cache(environment).catalogue.values()]


async def pull_model(
    name: str,
    environment: Mapping[str, str],
    *,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    waiting: Callable[[], None] = lambda: None,
) -> Pulled:
    """Fetches a model, unless it is there and whole."""
    from signoff.agents.fetching import fetch

    cache = model_cache(environment)
    weights = cache.find(name)
    fetched = await fetch(cache, weights, progress=progress, waiting=waiting)
    return Pulled(_listed(weights, environment), fetched, find_spec("xllamacpp") is not None)


def remove_model(name: str, environment: Mapping[str, str]) -> Removed:
    """Deletes a model's weights; one that is not there is none the worse for it."""
    cache = model_cache(environment)
    weights = cache.find(name)
    freed = cache.remove(weights)
    return Removed(_listed(weights, environment), freed)


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
