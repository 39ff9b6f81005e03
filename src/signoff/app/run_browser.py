"""Lists and reads the files in a run's folder, for surfaces that show them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from signoff.app.project import Project
from signoff.app.run_files import catch_up
from signoff.documents.regular_files import read_regular
from signoff.errors import UnknownName, UnreadableFile
from signoff.runtime.paths import safe_path
from signoff.store.rundir.files import LARGEST_READ

MOST_FILES = 2_000


class RunFileInfo(NamedTuple):
    """A file in a run's folder."""

    path: str
    """Seen from the run's folder, with slashes."""
    size: int


def list_files(project: Project, run: str) -> list[RunFileInfo]:
    """Returns the files of a run, by path; links and hidden files are left out."""
    catch_up(project, run, repair=False)
    folder = project.folder(run)
    return sorted(islice(_walk(folder, folder), MOST_FILES))


def read_file(project: Project, run: str, path: str) -> bytes:
    """Returns a file of a run; raises `UnknownName`, `UnsafePath` or `UnreadableFile`."""
    file = safe_path(project.folder(run), path)
    try:
        content = read_regular(file, LARGEST_READ)
    except (FileNotFoundError, NotADirectoryError):
        raise UnknownName("file", path, [each.path for each in list_files(project, run)]) from None
    except OSError as error:
        raise UnreadableFile(f"cannot read {path}: {error.strerror}") from error
    if len(content) > LARGEST_READ:
        raise UnreadableFile(f"{path} is larger than {LARGEST_READ // 2**20} MiB")
    return content


def _walk(folder: Path, root: Path) -> Iterator[RunFileInfo]:
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path), root)
        elif entry.is_file(follow_symlinks=False):
            path = Path(entry.path).relative_to(root).as_posix()
            yield RunFileInfo(path, entry.stat(follow_symlinks=False).st_size)
