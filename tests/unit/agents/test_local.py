import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from signoff.agents.local import LocalModel
from signoff.agents.weights import SMOLLM2
from signoff.core.errors import AgentBadRequest, ConfigError, ModelMissing
from signoff.core.remedies import Install, PullModel
from tests.agent_harness import ask
from tests.contract.local_harness import RUNNER

LIGHT = """
import sys
from signoff.agents.local import LocalModel
LocalModel()
import threading
print(threading.active_count(), "xllamacpp" in sys.modules)
"""


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for weights."""
    monkeypatch.setenv("SIGNOFF_MODELS", str(tmp_path))
    return tmp_path


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner of local models is installed."""
    monkeypatch.syspath_prepend(str(RUNNER))


@pytest.fixture
def no_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner of local models is not installed."""
    monkeypatch.setitem(sys.modules, "xllamacpp", None)


@pytest.mark.usefixtures("models", "no_runner")
async def test_a_missing_extra_is_reported_with_its_install_command() -> None:
    """A new user gets one line and no traceback."""
    with pytest.raises(AgentBadRequest) as raised:
        await ask(LocalModel())

    assert raised.value.remedies == (Install("local"),)
    assert "\n" not in str(raised.value)


@pytest.mark.usefixtures("models", "runner")
async def test_missing_weights_are_reported_with_the_pull_command() -> None:
    """A run never downloads weights by itself."""
    with pytest.raises(ModelMissing, match="not on this machine") as missing:
        await ask(LocalModel())

    assert missing.value.remedies == (PullModel("smollm2-135m"),)


@pytest.mark.usefixtures("runner")
async def test_damaged_weights_are_not_loaded(models: Path) -> None:
    """Native code would crash on a truncated file."""
    (models / SMOLLM2.file).write_bytes(b"half")

    with pytest.raises(ModelMissing, match="damaged") as missing:
        await ask(LocalModel())

    assert missing.value.remedies == (PullModel("smollm2-135m"),)


@pytest.mark.usefixtures("models", "no_runner")
async def test_health_names_everything_that_is_missing() -> None:
    """The user gets all remedies at once."""
    health = await LocalModel().health()

    assert not health.ready
    assert health.remedies == (Install("local"), PullModel("smollm2-135m"))


@pytest.mark.usefixtures("runner")
async def test_health_describes_the_model_as_small(models: Path) -> None:
    """Users should not use it as a judge."""
    whole(models)

    health = await LocalModel().health()

    assert health.ready
    assert "small" in health.detail
    assert await LocalModel().models() == ["smollm2-135m"]


@pytest.mark.parametrize(
    "options",
    [
        {"context": 0},
        {"context": "large"},
        {"max_tokens": True},
        {"temperature": -1},
        {"temperature": float("nan")},
        {"seed": -1},
        {"seed": 0.5},
        {"threads": 0},
        {"timeout": 0},
    ],
)
def test_an_invalid_option_is_a_config_error(
    options: dict[str, Any],
) -> None:
    """Native code would accept it and crash."""
    with pytest.raises(ConfigError, match=next(iter(options))):
        LocalModel(**options)


def test_a_file_of_the_users_own_may_hold_a_model_that_can_review() -> None:
    """`auto` skips the small model of the catalog, but not a large one."""
    assert not LocalModel().capabilities.judges
    assert LocalModel(model="/models/large.gguf").capabilities.judges


def test_creating_an_agent_starts_and_loads_nothing() -> None:
    """The agent is created even if no step uses it."""
    result = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True)

    assert result.stdout.split() == ["1", "False"], result.stderr


def whole(models: Path) -> None:
    """Creates a sparse file of the right size in place of the weights."""
    with (models / SMOLLM2.file).open("wb") as file:
        file.truncate(SMOLLM2.size)
