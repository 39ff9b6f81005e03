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
    """Reviewers read the diff, not the files."""
    folder = project / "work"
    (folder / "gone.txt").write_text("bye\n")
    before = take_snapshot(folder)

    (folder / "a.txt").write_text("one\n2\n")
    (folder / "deep").mkdir()
    (folder / "deep" / "new.txt").write_text("hello\n")
    (folder / "gone.txt").unlink()

    inside = changes_since(before).inside
    assert inside["a.txt"] == "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    assert inside["deep/new.txt"].endswith("+hello\n")
    assert inside["gone.txt"].startswith("--- a/gone.txt\n+++ /dev/null\n")


def test_binary_and_large_files_have_no_diff(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Diffs are stored in the journal, so binary contents are left out."""
    monkeypatch.setattr(workspace, "MAX_FILE_BYTES", 100)
    folder = project / "work"
    before = take_snapshot(folder)

    (folder / "picture.png").write_bytes(b"\x89PNG\0\0")
    (folder / "large.txt").write_text("x" * 1000)
    (folder / "latin.txt").write_bytes(b"caf\xe9\n")
    (folder / "empty.txt").touch()

    inside = changes_since(before).inside
    assert inside["picture.png"] == "added (not shown: binary, or too large)\n"
    assert inside["large.txt"] == "added (not shown: binary, or too large)\n"
    assert inside["latin.txt"] == "added (not shown: binary, or too large)\n"
    assert inside["empty.txt"] == "added (empty)\n"


def test_long_diffs_are_truncated(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generated file of a million lines must not fill the journal."""
    monkeypatch.setattr(workspace, "MAX_DIFF", 50)
    folder = project / "work"
    before = take_snapshot(folder)

    (folder / "long.txt").write_text("line\n" * 100)

    diff = changes_since(before).inside["long.txt"]
    assert len(diff) < 120
    assert "characters left out" in diff


def test_a_link_is_compared_by_its_target_path_and_not_followed(project: Path) -> None:
    """The target of a link may belong to someone else."""
    folder = project / "work"
    before = take_snapshot(folder)

    (folder / "link").symlink_to(project / "notes.txt")

    assert "+link to " in changes_since(before).inside["link"]
    assert "mine" not in changes_since(before).inside["link"]


def test_a_changed_file_mode_is_reported(project: Path) -> None:
    """The executable bit decides what can run."""
    folder = project / "work"
    before = take_snapshot(folder)

    (folder / "a.txt").chmod(0o755)

    assert changes_since(before).inside["a.txt"].startswith("mode changed from")


def test_changes_elsewhere_in_the_project_are_found(project: Path) -> None:
    """The agent may write to its workspace only."""
    before = take_snapshot(project / "work")

    (project / "notes.txt").write_text("theirs\n")
    (project / "new.txt").touch()

    assert changes_since(before).outside == ("../new.txt", "../notes.txt")


def test_caches_and_records_of_tools_are_skipped(project: Path) -> None:
    """A run's own records change while it runs."""
    before = take_snapshot(project / "work")

    (project / ".signoff" / "signoff.db").touch()
    (project / "work" / "__pycache__").mkdir()
    (project / "work" / "__pycache__" / "a.pyc").touch()

    changes = changes_since(before)
    assert (changes.inside, changes.outside) == ({}, ())


def test_hooks_and_settings_are_watched(project: Path) -> None:
    """A hook could start a program long after the agent has ended."""
    (project / "work" / ".git" / "hooks").mkdir(parents=True)
    (project / "work" / ".git" / "index").touch()
    before = take_snapshot(project / "work")

    (project / "work" / ".git" / "hooks" / "pre-commit").write_text("evil\n")
    (project / "work" / ".git" / "index").write_text("changed")
    (project / ".signoff" / "config.yaml").write_text("agents: {}\n")

    changes = changes_since(before)
    assert list(changes.inside) == [".git/hooks/pre-commit"]
    assert changes.outside == ("../.signoff/config.yaml",)


def test_workspaces_of_concurrent_calls_are_not_reported(project: Path) -> None:
    """Concurrent agents must not be blamed for each other's edits."""
    other = project / "other"
    other.mkdir()
    before = take_snapshot(project / "work")

    with editing(other):
        (other / "b.txt").touch()

    assert changes_since(before).outside == ()
    later = take_snapshot(project / "work")
    (other / "c.txt").touch()
    assert changes_since(later).outside == ("../other/c.txt",)


def test_nothing_outside_a_workspace_that_is_the_project_is_watched(project: Path) -> None:
    """The parent folder may be the user's home."""
    before = take_snapshot(project)

    (project / "notes.txt").write_text("changed\n")

    changes = changes_since(before)
    assert list(changes.inside) == ["notes.txt"]
    assert changes.outside == ()
