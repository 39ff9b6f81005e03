from pathlib import Path

import pytest

from signoff.surfaces.cli import main


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIGNOFF_HOME", raising=False)
    return tmp_path


def test_settings_that_must_be_added_by_hand_are_printed(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    """The flow that was written needs them."""
    (folder / ".signoff").mkdir()
    (folder / ".signoff" / "config.yaml").write_text("agents: {claude: {retries: 1}}\n")

    assert main(["init", "--preset", "code"]) == 0

    output = capsys.readouterr()
    assert "next: add this to .signoff/config.yaml:\n  # Added by" in output.err
    assert "    tests:\n      kind: check\n" in output.err


def test_a_home_elsewhere_is_named_as_it_is_found_from_here(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`made x/` for /elsewhere/x could be found neither from here nor from anywhere else."""
    elsewhere = folder / "elsewhere"
    (folder / "here").mkdir()
    monkeypatch.chdir(folder / "here")
    monkeypatch.setenv("SIGNOFF_HOME", str(elsewhere / "reviews"))

    assert main(["init", "--preset", "docs"]) == 0

    output = capsys.readouterr()
    assert f"created {elsewhere}/reviews/flows/docs.yaml\n" in output.out
    assert f"created {elsewhere}/docs-goal.yaml\n" in output.out
    assert output.err.startswith(f"next: cd {elsewhere}\n")
