from pathlib import Path

import pytest

from signoff.agents.weights import SMOLLM2, State
from signoff.app.models import DEFAULT, list_models, pull_model, remove_model
from signoff.errors import UnknownName


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"SIGNOFF_MODELS": str(tmp_path)}


def test_models_are_listed_whether_or_not_they_are_here(environment: dict[str, str]) -> None:
    """The list is also how people learn what there is."""
    (listed,) = list_models(environment)

    assert (listed.name, listed.state, listed.licence) == (DEFAULT, State.MISSING, "Apache-2.0")
    assert listed.size == SMOLLM2.size


def test_a_removed_model_is_missing_again(environment: dict[str, str], tmp_path: Path) -> None:
    """And what that freed is told."""
    (tmp_path / SMOLLM2.file).write_bytes(b"damaged")

    before = list_models(environment)[0].state
    _, freed = remove_model(DEFAULT, environment)

    assert (before, freed) == (State.DAMAGED, 7)
    assert list_models(environment)[0].state is State.MISSING


async def test_a_model_nobody_knows_is_not_looked_for(environment: dict[str, str]) -> None:
    """No package is fetched by a name a user mistyped."""
    with pytest.raises(UnknownName, match=DEFAULT):
        await pull_model("smollm3", environment)
    with pytest.raises(UnknownName, match=DEFAULT):
        remove_model("smollm3", environment)
