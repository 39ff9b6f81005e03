from pathlib import Path

import pytest

from signoff.cli.asking import clipboard_program, copy_to_clipboard


@pytest.fixture
def path(tmp_path: Path) -> str:
    for name in ("xsel", "wl-copy", "pbcopy"):
        (tmp_path / name).touch(mode=0o755)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("platform", "variables", "found"),
    [
        ("linux", {"DISPLAY": ":0"}, "xsel"),
        ("linux", {"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}, "wl-copy"),
        ("linux", {}, None),
        ("darwin", {}, "pbcopy"),
        ("win32", {}, None),
    ],
)
def test_the_clipboard_is_the_one_of_this_machine(
    path: str, platform: str, variables: dict[str, str], found: str | None
) -> None:
    """A program without a display hangs, or complains in the middle of a prompt."""
    argv = clipboard_program(platform, variables | {"PATH": path})

    assert (Path(argv[0]).name if argv else None) == found


def test_copying_tells_whether_it_worked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user who believes that the prompt was copied would paste something else."""
    taken = tmp_path / "taken"
    (tmp_path / "xclip").write_text(f"#!/bin/sh\ncat > {taken}\n")
    (tmp_path / "xclip").chmod(0o755)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    worked = copy_to_clipboard("Grüße\n")
    (tmp_path / "xclip").write_text("#!/bin/sh\nexit 1\n")
    failed = copy_to_clipboard("more")

    assert (worked, failed) == (True, False)
    assert taken.read_text("utf-8") == "Grüße\n"
