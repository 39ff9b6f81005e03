"""The project as it was in a commit, as files: what a review of changes takes its rules from."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from signoff.errors import UsageError, WriteFailed
from signoff.flows.files.git import Repository, TreeFile

_FOLDER = "runs/.base"
"""Inside the home; runs are not committed, and no run has a hidden name."""
_OWN = ("runs/", "signoff.db")
"""How paths of files begin that only signoff writes, inside the home."""
_LINK, _PROGRAM = "120000", "100755"
"""Modes of git."""
MOST_TREES = 10
UNUSED_SECONDS = 86_400.0
"""Of more trees than that, those that no review has used for this long are deleted."""


def base_tree(repository: Repository, commit: str, home: Path) -> Path:
    """Returns a folder with the files of a commit; it is made once for each commit.

    It always has a home of its own, so that no setting of the project around it is found. Raises
    `UsageError` if the change brings files that only signoff writes: one could be a forged tree.
    """
    _check_untracked(repository, home)
    folder = home / _FOLDER / commit
    try:
        if folder.is_dir():
            os.utime(folder)
            return folder
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write(repository.tree(commit), folder, home.name)
        _prune(folder.parent)
    except OSError as error:
        raise WriteFailed(f"cannot write the files of {commit}: {error}") from error
    return folder


def _check_untracked(repository: Repository, home: Path) -> None:
    for path in repository.tracked(home.name):
        # Compared without case, as some file systems do. A home that is a link has one entry.
        inside = path.lower().removeprefix(f"{home.name}/".lower())
        if path.lower() == home.name.lower() or f"{inside}/".startswith(_OWN):
            raise UsageError(
                f"git tracks {path}, which only signoff writes: rules could be forged with it; "
                "remove it from the repository"
            )


def _write(files: Iterable[TreeFile], folder: Path, home: str) -> None:
    draft = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        for file in files:
            if _stays_inside(file, draft):
                _write_file(file, draft / file.path)
            elif file.path.startswith(f"{home}/"):
                # No rule may get lost that way.
                raise WriteFailed(f"{file.path} leads outside the project")
        (draft / home).mkdir(exist_ok=True)
        os.utime(draft)
        _move(draft, folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


def _stays_inside(file: TreeFile, folder: Path) -> bool:
    """Tells whether a file, and what it links to, is inside the folder."""
    paths = [folder / file.path]
    if file.mode == _LINK:
        paths.append(paths[0].parent / os.fsdecode(file.content))
    return all(path.resolve().is_relative_to(folder.resolve()) for path in paths)


def _write_file(file: TreeFile, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if file.mode == _LINK:
        path.symlink_to(os.fsdecode(file.content))
        return
    path.write_bytes(file.content)
    if file.mode == _PROGRAM:
        path.chmod(0o755)


def _move(draft: Path, folder: Path) -> None:
    try:
        draft.rename(folder)
    except OSError:
        # Another process was faster; both have the same files.
        if not folder.is_dir():
            raise
        shutil.rmtree(draft, ignore_errors=True)


def _prune(trees: Path) -> None:
    """Deletes old trees: each is a copy of the whole project."""
    used = sorted(((each.stat().st_mtime, each) for each in trees.iterdir()), reverse=True)
    for at, tree in used[MOST_TREES:]:
        if at < time.time() - UNUSED_SECONDS:
            shutil.rmtree(tree, ignore_errors=True)
