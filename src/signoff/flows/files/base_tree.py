"""The project as it was in a commit, as files: what a review of changes takes its rules from."""

from __future__ import annotations

import io
import shutil
import tarfile
import tempfile
from pathlib import Path

from signoff.errors import WriteFailed
from signoff.flows.files.git import Repository

_FOLDER = "runs/.base"
"""Inside the home; runs are not committed, and no run has a hidden name."""


def base_tree(repository: Repository, commit: str, home: Path) -> Path:
    """Returns a folder with the files of a commit; it is made once for each commit.

    It always has a home of its own, so that no setting of the project around it is found.
    """
    folder = home / _FOLDER / commit
    if folder.is_dir():
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = Path(tempfile.mkdtemp(dir=folder.parent))
        with tarfile.open(fileobj=io.BytesIO(repository.archive(commit))) as archive:
            # The filter refuses links and names that lead out of the folder.
            archive.extractall(draft, filter="data")
        (draft / home.name).mkdir(exist_ok=True)
        _move(draft, folder)
    except (OSError, tarfile.TarError) as error:
        raise WriteFailed(f"cannot write the files of {commit}: {error}") from error
    return folder


def _move(draft: Path, folder: Path) -> None:
    try:
        draft.rename(folder)
    except OSError:
        # Another process was faster; both have the same files.
        if not folder.is_dir():
            raise
        shutil.rmtree(draft, ignore_errors=True)
