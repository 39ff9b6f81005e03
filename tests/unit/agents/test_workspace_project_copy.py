import os
from pathlib import Path

import pytest

from signoff.agents import workspace
from signoff.agents.workspace import copy_project, project_folder, project_program
from signoff.core.errors import AgentBadRequest, UnsafePath
from signoff.documents.home_folder import VARIABLE


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "a.py").write_text("old")
    (folder / "src" / "b.py").write_text("kept")
    return folder


def test_the_copy_has_the_new_texts_and_the_project_its_own(project: Path, tmp_path: Path) -> None:
    """Tests run on a change that may be rejected."""
    copy = tmp_path / "copy"

    copy_project(project, copy, {"src/a.py": "new", "tests/test_a.py": "added"})

    texts = {p.relative_to(copy).as_posix(): p.read_text() for p in copy.rglob("*.py")}
    assert texts == {"src/a.py": "new", "src/b.py": "kept", "tests/test_a.py": "added"}
    assert (project / "src" / "a.py").read_text() == "old"


def test_dependencies_are_linked_and_what_tools_create_is_left_out(
    project: Path, tmp_path: Path
) -> None:
    """Copying an environment takes longer than most tests; a pipe could never be read."""
    for name in (".venv", ".git", ".signoff", "__pycache__"):
        (project / name).mkdir()
    os.mkfifo(project / "pipe")
    copy = tmp_path / "copy"

    copy_project(project, copy, {})

    assert sorted(each.name for each in copy.iterdir()) == [".venv", "src"]
    assert (copy / ".venv").is_symlink()


@pytest.mark.parametrize("path", ["../out.py", "/tmp/out.py", "link/out.py"])
def test_no_text_is_written_outside_of_the_copy(project: Path, tmp_path: Path, path: str) -> None:
    """Paths come from files that a model or a change may have named."""
    (project / "link").symlink_to(tmp_path)

    with pytest.raises(UnsafePath):
        copy_project(project, tmp_path / "copy", {path: "x"})

    assert not (tmp_path / "out.py").exists()


def test_a_project_that_is_too_large_or_unreadable_is_an_error_with_its_reason(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check that silently ran on half of a project would prove nothing."""
    monkeypatch.setattr(workspace, "MOST_BYTES", 5)
    with pytest.raises(AgentBadRequest, match="larger than"):
        copy_project(project, tmp_path / "copy", {})

    with pytest.raises(AgentBadRequest, match="cannot be copied"):
        copy_project(tmp_path / "nowhere", tmp_path / "other", {})


def test_the_project_is_found_from_a_folder_in_it(project: Path) -> None:
    """A run can be started anywhere in a project."""
    (project / ".signoff").mkdir()

    assert project_folder(project / "src", {}) == project
    assert project_folder(project.parent, {}) == project.parent


def test_a_program_with_a_separator_in_its_name_is_in_the_project(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`./check.sh` would otherwise be searched on PATH only, where it is not."""
    (project / ".signoff").mkdir()
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.chdir(project / "src")

    found = [project_program(name) for name in ("./check.sh", "src/check.sh", "check.sh")]

    assert found == [str(project / "check.sh"), str(project / "src" / "check.sh"), "check.sh"]
