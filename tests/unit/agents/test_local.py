import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from signoff.agents.local import LocalModel
from signoff.agents.weights import SMOLLM2
from signoff.errors import AgentBadRequest, ConfigError, ModelMissing
from signoff.remedies import Install, PullModel
from signoff.testing.agent_harness import ask
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
    """What runs models is installed."""
    monkeypatch.syspath_prepend(str(RUNNER))


@pytest.fixture
def no_runner(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs models is not installed, whatever is on this machine."""
    monkeypatch.setitem(sys.modules, "xllamacpp", None)


@pytest.mark.usefixtures("models", "no_runner")
async def test_a_missing_extra_is_answered_with_the_command_that_brings_it() -> None:
    """One line, no traceback: this is the first thing a newcomer meets."""
    with pytest.raises(AgentBadRequest) as raised:
        await ask(LocalModel())

    assert raised.value.remedies == (Install("local"),)
    assert "\n" not in str(raised.value)


@pytest.mark.usefixtures("models", "runner")
async def test_missing_weights_are_answered_with_the_command_that_brings_them() -> None:
    """A run never fetches a hundred megabytes by itself."""
    with pytest.raises(ModelMissing, match="not on this machine") as missing:
        await ask(LocalModel())

    assert missing.value.remedies == (PullModel("smollm2-135m"),)


@pytest.mark.usefixtures("runner")
async def test_damaged_weights_are_not_loaded(models: Path) -> None:
    """Native code reads what the file says; half a file makes it crash."""
    (models / SMOLLM2.file).write_bytes(b"half")

    with pytest.raises(ModelMissing, match="damaged") as missing:
        await ask(LocalModel())

    assert missing.value.remedies == (PullModel("smollm2-135m"),)


@pytest.mark.usefixtures("models", "no_runner")
async def test_health_names_everything_that_is_missing() -> None:
    """One look, one line to copy; not one remedy after the other."""
    health = await LocalModel().health()

    assert not health.ready
    assert health.remedies == (Install("local"), PullModel("smollm2-135m"))


@pytest.mark.usefixtures("models", "runner")
async def test_health_asks_only_for_what_is_missing() -> None:
    """Whoever has the one does not need to get it again."""
    health = await LocalModel().health()

    assert (health.ready, health.remedies) == (False, (PullModel("smollm2-135m"),))


@pytest.mark.usefixtures("runner")
async def test_health_says_how_small_the_model_is(models: Path) -> None:
    """Nobody should mistake it for a judge."""
    whole(models)

    health = await LocalModel().health()

    assert health.ready
    assert "small" in health.detail
    assert await LocalModel().models() == ["smollm2-135m"]


@pytest.mark.usefixtures("models")
async def test_no_model_is_listed_before_one_is_here() -> None:
    """The list is of what can be asked now."""
    assert await LocalModel().models() == []


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
def test_an_option_that_makes_no_sense_is_a_mistake_in_the_settings(
    options: dict[str, Any],
) -> None:
    """Native code would take it, and crash or answer nonsense."""
    with pytest.raises(ConfigError, match=next(iter(options))):
        LocalModel(**options)


def test_making_one_starts_and_loads_nothing() -> None:
    """It is made for every project that names it, asked or not."""
    result = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True)

    assert result.stdout.split() == ["1", "False"], result.stderr


def whole(models: Path) -> None:
    """Puts a file of the right size where the weights belong, without writing it out."""
    with (models / SMOLLM2.file).open("wb") as file:
        file.truncate(SMOLLM2.size)
