from pathlib import Path

import pytest

from signoff.app.settings.home import init_home
from signoff.surfaces.cli import main


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIGNOFF_HOME", raising=False)
    init_home(tmp_path, {})


@pytest.mark.parametrize("number", ["0", "-2"])
def test_a_number_that_is_none_of_runs_is_refused(
    number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`no runs` was the answer to `-n 0`, however many there were."""
    assert main(["runs", "-n", number]) == 2

    output = capsys.readouterr()
    assert "give 1 or more, or -1 for all" in output.err
    assert output.out == ""
