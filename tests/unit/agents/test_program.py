import sys
from pathlib import Path

import pytest

from signoff.agents.program import Job, bundled_program, find_program, parse_version, run_program
from signoff.errors import AgentBadRequest
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
def test_a_version_is_found_in_any_text(text: str, version: tuple[int, ...] | None) -> None:
    """Every program says it in another sentence."""
    assert parse_version(text) == version


def test_a_program_inside_an_installed_package_is_found_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`signoff[claude]` brings the program along; importing that package would take a second."""
    (tmp_path / "bundling").mkdir()
    (tmp_path / "bundling" / "__init__.py").write_text("raise RuntimeError")
    place = program(tmp_path / "bundling" / "bin", "tool", "")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_program("tool", None, ("bundling", "bin", "tool"), "") == place
    assert bundled_program("bundling", "bin", "other") is None
    assert bundled_program("no_such_package", "bin") is None
    assert "bundling" not in sys.modules


def test_a_program_on_the_path_comes_before_one_in_a_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever installed one wants that one, logged in as it is."""
    place = program(tmp_path, "tool", "")
    monkeypatch.setenv("PATH", str(tmp_path))

    assert find_program("tool", None, ("other", "tool"), "") == place


def test_a_place_given_from_here_holds_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The program is started in its workspace, where `./tool` is something else."""
    place = program(tmp_path, "tool", "")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ".")

    assert find_program("tool", "./tool", (), "") == place
    assert find_program("tool", None, (), "") == place


async def test_a_file_that_is_no_program_is_refused_plainly(tmp_path: Path) -> None:
    """The system's own message names neither file nor remedy."""
    place = tmp_path / "tool"
    place.write_text("not a program")
    place.chmod(0o755)
    job = Job([str(place)], str(tmp_path), {}, 10)

    with pytest.raises(AgentBadRequest, match="could not be started"):
        await run_program(job, Watcher().call, lambda _chunk: None, lambda _chunk: None)
