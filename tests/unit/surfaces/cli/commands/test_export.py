import json
from pathlib import Path

import pytest

from signoff.surfaces.cli import main
from signoff.testing import ProjectFixture
from tests.unit.app.runs.test_history import FLOW


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ProjectFixture:
    """A project with one run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIGNOFF_HOME", raising=False)
    fixture = ProjectFixture(tmp_path)
    fixture.run(FLOW)
    return fixture


def test_a_file_and_stdout_get_the_same_bytes(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """What a pipeline stores must be what a user saw."""
    assert main(["export", "json", "test", "-o", "run.json"]) == 0
    assert capsysbinary.readouterr().out == b""

    assert main(["export", "json"]) == 0

    out = capsysbinary.readouterr().out
    assert out == (tmp_path / "run.json").read_bytes()
    assert json.loads(out)["run"] == "test"


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["jsn"], 2, "unknown format 'jsn'"),
        (["json", "none"], 2, "unknown run 'none'"),
        (["json", "-o", "missing/run.json"], 1, "No such file or directory"),
        ([], 2, "Missing argument 'FORMAT'"),
    ],
)
def test_a_wrong_name_is_one_line_on_stderr(
    arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing half-written may reach stdout, which other programs read."""
    assert main(["export", *arguments]) == code

    output = capsys.readouterr()
    assert words in output.err
    assert output.err.count("\n") == 1
    assert output.out == ""
