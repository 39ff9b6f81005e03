import os
from pathlib import Path

import pytest

from signoff.core.digest import text_digest
from signoff.core.errors import UnreadableFile, UnsafePath
from signoff.store.run_files import LARGEST_READ, RunFiles, encode_text


def test_a_file_is_read_back_as_bytes(tmp_path: Path) -> None:
    """An approval is compared with them; a link or a folder cannot be approved."""
    files = RunFiles(tmp_path)
    files.write("demo", "plan.md", "é\r\n")

    assert files.read("demo", "plan.md") == "é\r\n".encode()
    assert files.read("demo", "missing.md") is None
    assert files.read("demo", "plan.md/inside") is None
    with pytest.raises(UnsafePath):
        files.read("demo", "../other/plan.md")


def test_what_is_not_a_regular_file_of_a_sensible_size_cannot_be_read(tmp_path: Path) -> None:
    """A pipe would block the run forever."""
    files = RunFiles(tmp_path)
    files.write("demo", "plan.md", "")
    folder = tmp_path / "demo"
    os.mkfifo(folder / "pipe")
    (folder / "large").write_bytes(b"x" * (LARGEST_READ + 1))

    for path, problem in (("pipe", "is a pipe"), ("large", "larger than 16 MiB")):
        with pytest.raises(UnreadableFile, match=f"{path}.*{problem}"):
            files.read("demo", path)


@pytest.mark.parametrize("text", ["plain", "é\r\n", "half \ud83d", ""])
def test_the_digest_of_the_bytes_is_the_digest_of_the_text(text: str) -> None:
    """An approval of a file is refused as stale when the two differ."""
    import hashlib

    assert hashlib.sha256(encode_text(text)).hexdigest() == text_digest(text)


@pytest.mark.parametrize(
    "path",
    [
        "state.json",
        "State.JSON",
        "thread.jsonl",
        "live.log",
        "resolution.json",
        "definition.json",
        "hitl/answers.json",
        "hitl",
    ],
)
def test_reserved_names_cannot_be_written(tmp_path: Path, path: str) -> None:
    """A model that writes hitl/answers.json would approve its own work."""
    with pytest.raises(UnsafePath, match="belongs to the engine"):
        RunFiles(tmp_path).write("demo", path, "forged")

    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize("path", ["../x", "/x", "a/../x", ".env", "a\\..\\x", "C:x", ""])
def test_a_path_out_of_the_run_is_refused(tmp_path: Path, path: str) -> None:
    """Paths come from models."""
    with pytest.raises(UnsafePath):
        RunFiles(tmp_path / "runs").write("demo", path, "text")

    assert list(tmp_path.iterdir()) == []


def test_a_link_out_of_the_run_is_not_followed(tmp_path: Path) -> None:
    """An agent may plant a link and then ask for a file behind it."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "runs" / "demo").mkdir(parents=True)
    (tmp_path / "runs" / "demo" / "code").symlink_to(tmp_path / "outside")

    with pytest.raises(UnsafePath, match="is a link"):
        RunFiles(tmp_path / "runs").write("demo", "code/x", "text")

    assert list((tmp_path / "outside").iterdir()) == []


def test_the_name_of_a_run_is_checked_like_a_path(tmp_path: Path) -> None:
    """A name such as `../other` would reach into another run."""
    with pytest.raises(UnsafePath):
        RunFiles(tmp_path / "runs").write("../other", "a.txt", "text")
