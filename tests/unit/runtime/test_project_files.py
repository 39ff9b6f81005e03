"""Files that go back into a project."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from signoff.core.digest import text_digest
from signoff.core.errors import UnsafePath, WriteFailed
from signoff.runtime import project_files
from signoff.runtime.project_files import replace_files

OLD = {"a.md": "old a\n", "b.md": "old b\r\n"}
NEW = {"a.md": "new a\n", "b.md": "new b\r\n"}
EXPECTED = {path: text_digest(text) for path, text in OLD.items()}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for path, text in OLD.items():
        (tmp_path / path).write_bytes(text.encode())
    return tmp_path


def contents(root: Path) -> dict[str, str]:
    return {path.name: path.read_bytes().decode() for path in sorted(root.iterdir())}


def test_all_files_are_replaced_with_their_line_ends(root: Path) -> None:
    assert replace_files(root, NEW, EXPECTED) == {"written": ["a.md", "b.md"], "conflicts": []}
    assert contents(root) == NEW


def test_nothing_is_written_if_one_file_is_something_else(root: Path) -> None:
    (root / "b.md").write_text("other")

    assert replace_files(root, NEW, EXPECTED) == {"written": [], "conflicts": ["b.md"]}
    assert contents(root) == {**OLD, "b.md": "other"}


def test_a_missing_file_is_a_conflict(root: Path) -> None:
    (root / "a.md").unlink()

    assert replace_files(root, NEW, EXPECTED)["conflicts"] == ["a.md"]


def test_killed_between_two_files_each_is_old_or_new_and_the_next_try_finishes(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = project_files._replace

    def die_at_the_second(path: Path, text: str, scratch: Sequence[Path]) -> None:
        if path.name == "b.md":
            raise KeyboardInterrupt
        whole(path, text, scratch)

    with monkeypatch.context() as patched:
        patched.setattr(project_files, "_replace", die_at_the_second)
        with pytest.raises(KeyboardInterrupt):
            replace_files(root, NEW, EXPECTED)

    assert contents(root) == {"a.md": NEW["a.md"], "b.md": OLD["b.md"]}
    assert replace_files(root, NEW, EXPECTED)["conflicts"] == []
    assert contents(root) == NEW


def test_a_file_that_cannot_be_written_is_left_as_it_was(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("signoff.runtime.project_files.os.fsync", full)

    with pytest.raises(WriteFailed, match="No space left"):
        replace_files(root, NEW, EXPECTED)
    assert contents(root) == OLD


@pytest.mark.parametrize("path", ["../x.md", "link.md", "folder/x.md", "/etc/hostname"])
def test_nothing_outside_of_the_project_is_written(root: Path, path: str) -> None:
    outside = root.parent / f"{root.name}-outside"
    outside.mkdir()
    (outside / "x.md").write_text("x")
    (root / "link.md").symlink_to(outside / "x.md")
    (root / "folder").symlink_to(outside)

    with pytest.raises(UnsafePath):
        replace_files(root, {path: "y"}, {path: text_digest("x")})
    assert (outside / "x.md").read_text() == "x"


DIES = """
import os, sys
from pathlib import Path
from signoff.core.digest import text_digest
from signoff.runtime.project_files import replace_files

os.fsync = lambda _file: os._exit(9)
replace_files(Path(sys.argv[1]), {"a.md": "new a\\n"}, {"a.md": text_digest("old a\\n")})
"""


@pytest.mark.parametrize("below", [True, False])
@pytest.mark.parametrize("changed", [True, False])
def test_what_a_killed_process_leaves_is_hidden_and_the_next_one_removes_it(
    root: Path, below: bool, changed: bool
) -> None:
    """A folder with other people's files must not collect temporary ones."""
    if below:
        (root / ".signoff/runs").mkdir(parents=True)
    killed = subprocess.run([sys.executable, "-c", DIES, str(root)], check=False)
    assert killed.returncode == 9
    (left,) = [each for each in root.rglob("*") if each.is_file() and each.name not in OLD]
    assert left.is_relative_to(root / ".signoff/runs") == below
    if changed:
        (root / "a.md").write_text("other")

    result = replace_files(root, {"a.md": NEW["a.md"]}, EXPECTED)

    assert result["conflicts"] == (["a.md"] if changed else [])
    assert {each.name for each in root.rglob("*") if each.is_file()} == set(OLD)
