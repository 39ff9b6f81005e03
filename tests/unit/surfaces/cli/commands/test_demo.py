import sys
from pathlib import Path

import pytest

from signoff.runtime.extras import install_command
from signoff.surfaces.cli import main

SCRIPT = """\
version: 1
rules:
  - {step: draft, text: Sipwell is free and needs no account.}
  - {step: fix, text: "Sipwell is free, needs no account and comes out on 1 May."}
"""
SETTINGS = "version: 1\nagents:\n  stand-in: {{kind: scripted, file: {file}}}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of a user who has an agent called stand-in, and no model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.setenv("SIGNOFF_MODELS", str(tmp_path / "models"))
    (tmp_path / "script.yaml").write_text(SCRIPT)
    settings = tmp_path / "settings.yaml"
    settings.write_text(SETTINGS.format(file=tmp_path / "script.yaml"))
    monkeypatch.setenv("SIGNOFF_CONFIG", str(settings))
    return tmp_path


def test_it_ends_with_every_version_and_where_everything_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The first command of a newcomer has to explain itself."""
    assert main(["demo", "--agent", "stand-in"]) == 0

    printed = capsys.readouterr()
    assert "  1  Sipwell is free and needs no account.\n" in printed.out
    assert "HIGH     the text does not say that it comes out on 1 May" in printed.out
    assert "     fixed by exact edits, without an agent call:\n     -Sipwell is free" in printed.out
    assert "  3  sipwell is free" in printed.out
    assert "report    signoff-demo/demo.html" in printed.out
    assert Path("signoff-demo/demo.html").read_text().startswith("<!DOCTYPE html>")
    assert "artifact  signoff-demo/.signoff/runs/demo/final/artifact.md" in printed.out
    assert "round  open" in printed.out
    assert "  cd signoff-demo\n" in printed.err


def test_it_is_killed_once_and_repeats_no_call(capfd: pytest.CaptureFixture[str]) -> None:
    """That nothing is paid for twice is the promise a newcomer doubts most."""
    assert main(["demo", "--agent", "stand-in", "--kill"]) == 0

    printed = capfd.readouterr()
    assert "Its process was killed on purpose" in printed.err
    assert "the previous process is gone; nothing finished is repeated" in printed.err
    assert "  calls     14 finished, 0 of them made twice\n" in printed.out
    assert "passed review: no open findings" in printed.out


def test_a_person_can_be_the_writer(capsys: pytest.CaptureFixture[str]) -> None:
    """Users without any agent can still see how the loop works."""
    assert main(["demo", "--agent", "manual", "--no-input"]) == 10

    printed = capsys.readouterr()
    assert "#1 manual work: Facts: sipwell is an app for the phone." in printed.out
    assert printed.err.endswith("Run these commands in the demo's folder: cd signoff-demo\n")


def test_without_the_model_it_says_how_to_get_it_and_makes_nothing(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """One line to copy, and no incomplete project is left behind."""
    assert main(["demo"]) == 2

    printed = capsys.readouterr().err
    assert f"{install_command('local')} && signoff models pull" in printed
    assert not (folder / "signoff-demo").exists()
