from pathlib import Path

import pytest

from signoff.core.args import bind
from signoff.core.errors import UsageError, WriteFailed
from signoff.skills.state import STATE_DIR, check_state_dir, need_state_dir, state_directory

FILES = {"plan.json": '{"milestones": []}\n', "context.json": "{}\n"}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".signoff").mkdir()
    monkeypatch.delenv("SIGNOFF_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_state_directory_is_created_in_the_project(project: Path) -> None:
    """Its files begin as the skill says, and only the user can read them."""
    prepared = state_directory("planner", FILES)({"state_dir": None})

    folder = Path(prepared["state_dir"])
    assert folder.is_absolute()
    assert folder.parent == project / ".signoff" / "skill-state"
    assert folder.name.startswith("planner-")
    assert {each.name: each.read_text() for each in folder.iterdir()} == FILES
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {each.stat().st_mode & 0o777 for each in folder.iterdir()} == {0o600}
    assert (folder.parent / ".gitignore").read_text() == "*\n"


def test_a_link_in_place_of_the_ignore_file_is_not_followed(project: Path) -> None:
    """A project from elsewhere could have a file written anywhere."""
    elsewhere = project / "elsewhere"
    ignore = project / ".signoff" / "skill-state" / ".gitignore"
    ignore.parent.mkdir()
    ignore.symlink_to(elsewhere)

    state_directory("planner", FILES)({})

    assert not elsewhere.exists()


def test_without_a_project_it_is_created_in_the_temporary_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A skill works anywhere, and leaves no `.signoff/` behind."""
    work, temporary = tmp_path / "work", tmp_path / "temporary"
    work.mkdir()
    temporary.mkdir()
    monkeypatch.delenv("SIGNOFF_HOME", raising=False)
    monkeypatch.chdir(work)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))

    folder = Path(state_directory("planner", FILES)({})["state_dir"])

    assert folder.parent == temporary
    assert list(work.iterdir()) == []


def test_nothing_is_left_of_a_directory_that_cannot_be_filled(project: Path) -> None:
    """A later command would take a half-written state for a whole one."""
    with pytest.raises(WriteFailed, match=r"cannot write .*; check"):
        state_directory("planner", {"plan.json": "{}", "no-such-folder/x": ""})({})

    assert [each.name for each in (project / ".signoff" / "skill-state").iterdir()] == [
        ".gitignore"
    ]


def test_a_state_directory_that_is_missing_a_file_or_a_link_is_refused(tmp_path: Path) -> None:
    """A link in a shared folder could lead to files of another user's choice."""
    folder, file, link = tmp_path / "folder", tmp_path / "file", tmp_path / "link"
    folder.mkdir()
    file.touch()
    link.symlink_to(folder)

    problems = {
        name: check_state_dir(str(path))
        for name, path in {
            "folder": folder,
            "file": file,
            "link": link,
            "link with a slash": f"{link}/",
            "missing": tmp_path / "missing",
            "no name": "nul\0",
        }.items()
    }

    assert [name for name, problem in problems.items() if not problem] == ["folder"]
    assert "link" in problems["link with a slash"]
    for path in (file, link, tmp_path / "missing"):
        _, found = bind({"state_dir": STATE_DIR}, {"state_dir": str(path)})
        assert len(found) == 1
        with pytest.raises(UsageError):
            need_state_dir({"state_dir": str(path)})
    assert need_state_dir({"state_dir": str(folder)}) == folder


@pytest.mark.parametrize("params", [{}, {"state_dir": None}])
def test_a_step_that_needs_the_state_directory_says_so(params: dict[str, None]) -> None:
    """The calling agent learns where to find it."""
    with pytest.raises(UsageError, match="first step"):
        need_state_dir(params)
