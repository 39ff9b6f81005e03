"""The project before a change, as files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from signoff.core.errors import UsageError, WriteFailed
from signoff.review.flow.files import git as module
from signoff.review.flow.files.git import Repository, base_tree


def git(root: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    command = ["git", *identity, *arguments]
    return subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout


def commit(root: Path) -> str:
    git(root, "add", "-A", "-f")
    git(root, "commit", "-q", "--allow-empty", "-m", "x")
    return git(root, "rev-parse", "HEAD").strip()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "page.md").write_text("A page.\n")
    (tmp_path / ".signoff").mkdir()
    (tmp_path / ".signoff/config.yaml").write_text("version: 1\n")
    return tmp_path


def unpack(root: Path, name: str) -> Path:
    return base_tree(Repository(root), name, root / ".signoff")


def test_a_tree_has_the_files_of_its_commit_and_is_made_once(root: Path) -> None:
    base = commit(root)
    (root / "page.md").write_text("Changed.\n")

    tree = unpack(root, base)

    assert (tree / "page.md").read_text() == "A page.\n"
    assert (tree / ".signoff/config.yaml").is_file()
    assert unpack(root, base) == tree
    assert [each.name for each in tree.parent.iterdir()] == [base]


@pytest.mark.parametrize("name", ["runs/.base/{}/.signoff/config.yaml", "RUNS/x", "signoff.db-wal"])
def test_a_change_cannot_bring_its_own_tree(root: Path, name: str) -> None:
    """Its author knows the base commit, so without this check they could choose the rules."""
    base = commit(root)
    forged = root / ".signoff" / name.format(base)
    forged.parent.mkdir(parents=True, exist_ok=True)
    forged.write_text("version: 1\n")
    commit(root)

    with pytest.raises(UsageError, match="only signoff writes"):
        unpack(root, base)


@pytest.mark.parametrize("name", [".signoff", ".signoff/runs"])
def test_a_change_cannot_replace_the_home_by_a_link(root: Path, name: str) -> None:
    base = commit(root)
    (root / "evil").mkdir()
    (root / "evil/x").write_text("")
    if name == ".signoff":
        git(root, "rm", "-rq", name)
    (root / name).symlink_to(root / "evil")
    commit(root)

    with pytest.raises(UsageError, match="only signoff writes"):
        unpack(root, base)


def test_links_that_lead_out_are_left_out(root: Path) -> None:
    (root / "hosts").symlink_to("/etc/hosts")
    (root / "up").symlink_to("../..")
    (root / "same").symlink_to("page.md")

    tree = unpack(root, commit(root))

    assert sorted(each.name for each in tree.iterdir()) == [".signoff", "page.md", "same"]


def test_rules_that_are_such_a_link_are_an_error(root: Path) -> None:
    """A review without these rules could pass, and nothing of the attempt stays behind."""
    (root / ".signoff/constraints").symlink_to("/etc")

    with pytest.raises(WriteFailed, match="constraints leads outside the project"):
        unpack(root, commit(root))

    assert list((root / ".signoff/runs/.base").iterdir()) == []


def test_old_trees_are_deleted(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is a copy of the whole project."""
    monkeypatch.setattr(module, "MOST_TREES", 2)
    git_ignored = root / ".gitignore"
    git_ignored.write_text(".signoff/runs\n")
    trees: list[Path] = []
    for _ in range(4):
        git(root, "add", "-A")
        git(root, "commit", "-q", "--allow-empty", "-m", f"{len(trees)}")
        trees.append(unpack(root, git(root, "rev-parse", "HEAD").strip()))
        if len(trees) < 3:
            os.utime(trees[-1], (len(trees), len(trees)))

    assert [tree.is_dir() for tree in trees] == [False, False, True, True]
