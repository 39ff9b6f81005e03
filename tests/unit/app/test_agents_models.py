from pathlib import Path

import pytest

from signoff.app.agents import DEFAULT, pull_model, remove_model
from signoff.errors import UnknownName


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"SIGNOFF_MODELS": str(tmp_path)}


async def test_an_unknown_model_is_not_searched_for(environment: dict[str, str]) -> None:
    """No package may be downloaded because of a typo."""
    with pytest.raises(UnknownName, match=DEFAULT):
        await pull_model("smollm3", environment)
    with pytest.raises(UnknownName, match=DEFAULT):
        remove_model("smollm3", environment)
