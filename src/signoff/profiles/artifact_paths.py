"""Checks the paths of files that a response contains, before anything is written.

Models choose these paths, so they are hostile until they are checked.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from signoff.errors import UnsafePath
from signoff.runtime.paths import LONGEST_PATH, check_path, fold_name

if TYPE_CHECKING:
    from signoff.profiles.model import WriteOp

LONGEST = LONGEST_PATH - 100
"""Bytes of a path: the folder of the round comes before it."""


def check_artifact_path(path: str, protected: Collection[str] = ()) -> str:
    """Returns a path with `/` between its names; raises `ValueError` with the reason.

    It has to be a relative path of plain, visible names. File names in `protected` (lower case)
    are refused in every folder.
    """
    normalized = path.replace("\\", "/")
    try:
        check_path(normalized)
    except UnsafePath as error:
        raise ValueError(str(error)) from error
    if len(normalized.encode()) > LONGEST:
        raise ValueError(f"the path {path[:77]!r}... is longer than {LONGEST} bytes")
    name = normalized.rpartition("/")[2]
    if fold_name(name) in protected:
        raise ValueError(f"the path {path!r} cannot be used: {name!r} is protected")
    return normalized


def check_writes(writes: Sequence[WriteOp], protected: Collection[str] = ()) -> dict[str, str]:
    """Returns the text of each file by its path; raises `ValueError` with every problem.

    There has to be a file, and no two of them may have one name, not even on systems that
    compare names without case.
    """
    if not writes:
        raise ValueError("the response contains no file")
    texts: dict[str, str] = {}
    taken = _TakenNames()
    problems: list[str] = []
    for write in writes:
        try:
            path = check_artifact_path(write.path, protected)
            taken.add(path)
        except ValueError as error:
            problems.append(str(error))
        else:
            texts[path] = write.content
    if problems:
        raise ValueError("; ".join(problems))
    return texts


class _TakenNames:
    """The files of a plan and their folders, as systems without case compare them."""

    def __init__(self) -> None:
        self._files: dict[str, str] = {}
        self._folders: dict[str, str] = {}

    def add(self, path: str) -> None:
        """Adds a file; raises `ValueError` if it is one already, or a file and a folder."""
        name = fold_name(path)
        folders = [name[:end] for end, character in enumerate(name) if character == "/"]
        clashes = (self._files.get(folder) for folder in folders)
        clash = self._files.get(name) or self._folders.get(name) or next(filter(None, clashes), "")
        if clash:
            raise ValueError(f"the files {clash!r} and {path!r} cannot both be written")
        self._files[name] = path
        self._folders.update(dict.fromkeys(folders, path))
