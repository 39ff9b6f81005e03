import os
from pathlib import Path

import pytest

from signoff.agents import workspace
from signoff.agents.workspace import changes_since, editing, take_snapshot


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".signoff").mkdir()
    (tmp_path / "notes.txt").write_text("mine\n")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("one\ntwo\n")
    return tmp_path


def test_changed_added_and_deleted_files_are_distinguished(project: Path) -> None:
    """A reviewer reads the diff, not the files."""
    place = project / "work"
    (place / "gone.txt").write_text("bye\n")
    before = take_snapshot(place)

    (place / "a.txt").write_text("one\n2\n")
    (place / "deep").mkdir()
    (place / "deep" / "new.txt").write_text("hello\n")
    (place / "gone.txt").unlink()

    inside = changes_since(before).inside
    assert inside["a.txt"] == "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert inside["deep/new.txt"].endswith("+hello\n")
    assert inside["gone.txt"].startswith("--- a/gone.txt\n+++ /dev/null\n")


def test_nothing_changed_is_nothing_said(project: Path) -> None:
    """A file that was only touched, or written with what it held, did not change."""
    place = project / "work"
    before = take_snapshot(place)

    os.utime(place / "a.txt", (1, 1))

    changes = changes_since(before)
    assert changes.inside == {}
    assert changes.outside == ()


def test_what_cannot_be_shown_is_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal is no place for pictures."""
    monkeypatch.setattr(workspace, "MAX_FILE_BYTES", 100)
    place = project / "work"
    before = take_snapshot(place)

    (place / "picture.png").write_bytes(b"\x89PNG\0\0")
    (place / "large.txt").write_text("x" * 1000)
    (place / "latin.txt").write_bytes(b"caf\xe9\n")
    (place / "empty.txt").touch()

    inside = changes_since(before).inside
    assert inside["picture.png"] == "added (not shown: binary, or too large)\n"
    assert inside["large.txt"] == "added (not shown: binary, or too large)\n"
    assert inside["latin.txt"] == "added (not shown: binary, or too large)\n"
    assert inside["empty.txt"] == "added (empty)\n"


def test_long_diffs_are_cut(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generated file of a million lines must not fill the journal."""
    monkeypatch.setattr(workspace, "MAX_DIFF", 50)
    place = project / "work"
    before = take_snapshot(place)

    (place / "long.txt").write_text("line\n" * 100)

    diff = changes_since(before).inside["long.txt"]
    assert len(diff) < 120
    assert "characters left out" in diff


def test_a_link_is_what_it_points_to_and_is_not_followed(project: Path) -> None:
    """The target of a link may belong to someone else."""
    place = project / "work"
    before = take_snapshot(place)

    (place / "link").symlink_to(project / "notes.txt")

    assert "+link to " in changes_since(before).inside["link"]
    assert "mine" not in changes_since(before).inside["link"]


def test_an_executable_bit_is_a_change(project: Path) -> None:
    """It decides what runs."""
    place = project / "work"
    before = take_snapshot(place)

    (place / "a.txt").chmod(0o755)

    assert changes_since(before).inside["a.txt"].startswith("mode changed from")


def test_changes_elsewhere_in_the_project_are_found(project: Path) -> None:
    """Write access was given to the workspace and to nothing else."""
    before = take_snapshot(project / "work")

    (project / "notes.txt").write_text("theirs\n")
    (project / "new.txt").touch()

    assert changes_since(before).outside == ("../new.txt", "../notes.txt")


def test_what_tools_keep_for_themselves_is_left_out(project: Path) -> None:
    """The run's own records change while it runs."""
    before = take_snapshot(project / "work")

    (project / ".signoff" / "signoff.db").touch()
    (project / "work" / "__pycache__").mkdir()
    (project / "work" / "__pycache__" / "a.pyc").touch()

    changes = changes_since(before)
    assert (changes.inside, changes.outside) == ({}, ())


def test_what_decides_what_runs_later_is_not_left_out(project: Path) -> None:
    """A hook or a setting would run a program long after the agent is gone."""
    (project / "work" / ".git" / "hooks").mkdir(parents=True)
    (project / "work" / ".git" / "index").touch()
    before = take_snapshot(project / "work")

    (project / "work" / ".git" / "hooks" / "pre-commit").write_text("evil\n")
    (project / "work" / ".git" / "index").write_text("changed")
    (project / ".signoff" / "config.yaml").write_text("agents: {}\n")

    changes = changes_since(before)
    assert list(changes.inside) == [".git/hooks/pre-commit"]
    assert changes.outside == ("../.signoff/config.yaml",)


def test_another_calls_workspace_is_not_taken_for_elsewhere(project: Path) -> None:
    """Agents at work side by side would refuse each other's edits."""
    other = project / "other"
    other.mkdir()
    before = take_snapshot(project / "work")

    with editing(other):
        (other / "b.txt").touch()

    assert changes_since(before).outside == ()
    later = take_snapshot(project / "work")
    (other / "c.txt").touch()
    assert changes_since(later).outside == ("../other/c.txt",)


def test_a_workspace_that_is_the_project_has_no_elsewhere(project: Path) -> None:
    """The folder above may be the user's whole home."""
    before = take_snapshot(project)

    (project / "notes.txt").write_text("changed\n")

    changes = changes_since(before)
    assert list(changes.inside) == ["notes.txt"]
    assert changes.outside == ()
