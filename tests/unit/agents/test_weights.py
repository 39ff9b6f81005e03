from pathlib import Path

import pytest

from signoff.agents.weights import CATALOG, SMOLLM2, ModelCache, State, model_cache
from signoff.core.errors import UnknownName
from tests.unit.agents.wheels import MODEL, cache_of, packed


def test_the_folder_of_weights_is_configurable() -> None:
    """Weights are large, and users may keep them on another disk."""
    named = model_cache({"SIGNOFF_MODELS": "/big/disk", "XDG_CACHE_HOME": "/caches"})
    usual = model_cache({"XDG_CACHE_HOME": "/caches"})

    assert named.folder == Path("/big/disk")
    assert usual.folder == Path("/caches/signoff/models")
    assert model_cache({}).folder == Path.home() / ".cache" / "signoff" / "models"


@pytest.mark.parametrize("name", CATALOG)
def test_every_model_is_pinned_and_described(name: str) -> None:
    """Only verified files are used, and the summary must not promise too much."""
    weights = CATALOG[name]

    assert weights.name == name
    assert len(weights.sha256) == len(weights.wheel_sha256) == 64
    assert "==" in weights.package
    assert "small" in weights.summary


def test_a_model_is_missing_ready_or_damaged(tmp_path: Path) -> None:
    """Each state has another remedy."""
    weights = packed(tmp_path / "index")[1]
    cache = cache_of(tmp_path / "models", weights)
    found = [cache.state(weights)]
    cache.folder.mkdir()

    cache.path(weights).write_bytes(MODEL)
    found.append(cache.state(weights))
    cache.path(weights).write_bytes(MODEL[:-1])
    found.append(cache.state(weights))

    assert found == [State.MISSING, State.READY, State.DAMAGED]


def test_a_changed_byte_is_detected_by_the_digest(tmp_path: Path) -> None:
    """The size alone does not reveal it."""
    weights = packed(tmp_path / "index")[1]
    cache = cache_of(tmp_path, weights)
    cache.path(weights).write_bytes(MODEL)
    before = cache.is_intact(weights)

    cache.path(weights).write_bytes(MODEL[:-1] + b"?")

    assert before
    assert not cache.is_intact(weights)


def test_removing_returns_the_bytes_freed(tmp_path: Path) -> None:
    """Removing a missing file frees nothing."""
    weights = packed(tmp_path / "index")[1]
    cache = cache_of(tmp_path, weights)
    cache.path(weights).write_bytes(MODEL)

    freed = [cache.remove(weights), cache.remove(weights)]

    assert freed == [len(MODEL), 0]
    assert cache.state(weights) is State.MISSING


def test_an_unknown_model_is_not_searched_for(tmp_path: Path) -> None:
    """No package may be downloaded because of a typo."""
    with pytest.raises(UnknownName, match=SMOLLM2.name):
        ModelCache(tmp_path, CATALOG).find("smollm3")
