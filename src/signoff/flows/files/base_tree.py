"""The project as it was in a commit, as files: what a review of changes takes its rules from."""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import tempfile
import time
from pathlib import Path

from signoff.errors import UsageError, WriteFailed
from signoff.flows.files.git import Repository

_FOLDER = "runs/.base"
"""Inside the home; runs are not committed, and no run has a hidden name."""
_OWN = ("runs/", "signoff.db")
"""How paths of files begin that only signoff writes, inside the home."""
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
        _unpack(repository.archive(commit), folder, home.name)
        _prune(folder.parent)
    except (OSError, tarfile.TarError) as error:
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


def _unpack(content: bytes, folder: Path, home: str) -> None:
    def checked(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
        try:
            return tarfile.data_filter(member, path)
        except tarfile.FilterError:
            # A link that leads out of the folder. No rule may get lost that way.
            if member.name.startswith(f"{home}/"):
                raise
            return None

    draft = Path(tempfile.mkdtemp(dir=folder.parent))
    try:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(draft, filter=checked)  # noqa: S202  # checked by the filter
        (draft / home).mkdir(exist_ok=True)
        os.utime(draft)
        _move(draft, folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise


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
