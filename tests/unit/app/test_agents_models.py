from pathlib import Path

import pytest

from signoff.agents.weights import SMOLLM2, State
from signoff.app.agents import DEFAULT, list_models, pull_model, remove_model
from signoff.errors import UnknownName


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"SIGNOFF_MODELS": str(tmp_path)}


def test_models_are_listed_whether_or_not_they_are_installed(environment: dict[str, str]) -> None:
    """The list also shows what can be installed."""
    (listed,) = list_models(environment)

    assert (listed.name, listed.state, listed.licence) == (DEFAULT, State.MISSING, "Apache-2.0")
    assert listed.size == SMOLLM2.size


async def test_an_unknown_model_is_not_searched_for(environment: dict[str, str]) -> None:
    """No package may be downloaded because of a typo."""
    with pytest.raises(UnknownName, match=DEFAULT):
        await pull_model("smollm3", environment)
    with pytest.raises(UnknownName, match=DEFAULT):
        remove_model("smollm3", environment)
