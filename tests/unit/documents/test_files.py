from pathlib import Path

import pytest

from signoff.core.errors import Problem
from signoff.documents.files import MOST_BYTES, display_path, read_text


def error_message(path: Path) -> str:
    problems: list[Problem] = []
    assert read_text(path, problems) is None
    (problem,) = problems
    return str(problem)


def test_a_text_is_read_without_its_byte_order_mark(tmp_path: Path) -> None:
    """Some editors write one, and it would become part of the first key."""
    (tmp_path / "a.yaml").write_bytes(b"\xef\xbb\xbfa: 1\r\n")

    assert read_text(tmp_path / "a.yaml", []) == "a: 1\r\n"


def test_a_file_that_cannot_be_read_is_a_problem_with_a_reason(tmp_path: Path) -> None:
    """`validate` must name the file, whatever the error is."""
    (tmp_path / "utf16").write_bytes(b"a: 1\n" + "b: ä".encode("utf-16"))
    (tmp_path / "huge").write_bytes(b"#" * (MOST_BYTES + 1))

    assert error_message(tmp_path / "none").endswith("none: does not exist")
    assert error_message(tmp_path).endswith("is a folder, not a file")
    utf16 = error_message(tmp_path / "utf16")
    assert utf16.endswith("utf16:2: cannot be read: it is not UTF-8 text")
    assert "huge: is larger than 1,000,000 bytes" in error_message(tmp_path / "huge")


def test_a_path_below_the_current_folder_is_shown_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Error messages are read in the folder where the command was run."""
    monkeypatch.chdir(tmp_path)

    assert display_path(tmp_path / "flows" / "a.yaml") == str(Path("flows", "a.yaml"))
    assert display_path(tmp_path.parent) == str(tmp_path.parent)
    assert display_path(Path("a.yaml")) == "a.yaml"
