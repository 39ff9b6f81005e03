import sys
from pathlib import Path
from typing import Any

import pytest

from signoff.agents.headless import (
    MAX_ERROR_LINE_BYTES,
    Job,
    LineSplitter,
    Transcript,
    find_program,
    parse_version,
    run_program,
)
from signoff.agents.kinds import bundled_program
from signoff.core.errors import AgentBadRequest
from tests.unit.agents.programs import Watcher, program


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("2.1.325 (Claude Code)", (2, 1, 325)),
        ("codex-cli 0.163.0", (0, 163, 0)),
        ("0.61", (0, 61, 0)),
        ("no idea", None),
    ],
)
def test_the_version_is_found_in_any_text(text: str, version: tuple[int, ...] | None) -> None:
    """Programs print their version in different formats."""
    assert parse_version(text) == version


def test_a_program_inside_an_installed_package_is_found_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`signoff[claude]` includes the program; importing that package would take a second."""
    (tmp_path / "bundling").mkdir()
    (tmp_path / "bundling" / "__init__.py").write_text("raise RuntimeError")
    path = program(tmp_path / "bundling" / "bin", "tool", "")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_program("tool", None, ("bundling", "bin", "tool")) == path
    assert bundled_program(("bundling", "bin", "other")) is None
    assert bundled_program(("no_such_package", "bin")) is None
    assert bundled_program(()) is None
    assert "bundling" not in sys.modules


def test_a_program_on_the_path_comes_before_one_in_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program that the user installed is the one that is logged in."""
    (tmp_path / "bundled").mkdir()
    (tmp_path / "bundled" / "__init__.py").touch()
    program(tmp_path / "bundled" / "bin", "tool", "")
    path = program(tmp_path, "tool", "")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_program("tool", None, ("bundled", "bin", "tool")) == path


def test_a_relative_path_becomes_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program is started in its workspace, where `./tool` would be another file."""
    path = program(tmp_path, "tool", "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ".")

    assert find_program("tool", "./tool", ()) == path
    assert find_program("tool", None, ()) == path


async def test_a_file_that_is_not_a_program_is_refused(tmp_path: Path) -> None:
    """The system's own message does not name the file."""
    path = tmp_path / "tool"
    path.write_text("not a program")
    path.chmod(0o755)
    job = Job([str(path)], str(tmp_path), {}, 10)

    with pytest.raises(AgentBadRequest, match="could not be started"):
        await run_program(job, Watcher().call, lambda _chunk: None, lambda _chunk: None)


class Received:
    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.plain: list[str] = []
        self.transcript = Transcript(self.events.append, self.plain.append)


def test_events_are_split_into_lines_wherever_chunks_end() -> None:
    """A chunk may end in the middle of a character."""
    received = Received()
    text = '{"a": "ä"}\nplain\n{"b": 2}'.encode()

    for at in range(len(text)):
        received.transcript.add(text[at : at + 1])
    received.transcript.close()

    assert received.events == [{"a": "ä"}, {"b": 2}]
    assert received.plain == ["plain"]


@pytest.mark.parametrize("text", [b'{\n "a": 1\n}\n', b'[\n{"a":\n 1}\n]'])
def test_a_document_over_many_lines_is_one_event(text: bytes) -> None:
    """Some output formats are indented."""
    received = Received()

    received.transcript.add(text)
    received.transcript.close()

    assert received.events == [{"a": 1}]


def test_an_endless_line_does_not_fill_the_memory() -> None:
    """Standard error is read as long as the program runs."""
    lines: list[str] = []
    errors = LineSplitter(lines.append)

    for _ in range(100):
        errors.add(b"x" * 1000)
    errors.add(b"\nlast ")
    errors.add(b"words\n")

    assert len(lines[0]) == MAX_ERROR_LINE_BYTES
    assert lines[1:] == ["last words"]
