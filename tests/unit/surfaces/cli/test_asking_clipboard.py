from pathlib import Path

import pytest

from signoff.surfaces.cli.asking import copy_to_clipboard


def program(file: Path, script: str) -> None:
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def test_copying_uses_the_display_there_is_and_tells_whether_it_worked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user who believes that the prompt was copied would paste something else."""
    taken = tmp_path / "taken"
    program(tmp_path / "xclip", f"cat > {taken}")
    program(tmp_path / "wl-copy", f"echo wayland > {taken}")
    for variable in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    without_display = copy_to_clipboard("more")
    monkeypatch.setenv("DISPLAY", ":0")
    worked = copy_to_clipboard("Grüße\n")
    text = taken.read_text("utf-8")
    program(tmp_path / "xclip", "exit 1")
    failed = copy_to_clipboard("more")

    assert (without_display, worked, failed) == (False, True, False)
    assert text == "Grüße\n"
