"""The state directory of a skill: files that its steps and sub-agents share.

A skill that keeps state declares `STATE_DIR` as an input, and `state_directory(...)` as what
prepares a run. The directory is created once, before the first step, and every later step gets
its path.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from signoff.core.args import Arg, Param
from signoff.core.errors import UsageError
from signoff.documents.home_folder import find_home_folder
from signoff.documents.regular_files import (
    create_private,
    make_private_folder,
    make_private_folders,
    translate_write_errors,
)

NAME = "state_dir"
"""The parameter that holds the path of the state directory."""

FOLDER = "skill-state"
"""The folder of a project's home that state directories are created in."""


def check_state_dir(path: str) -> str:
    """Returns what is wrong with the path of a state directory; empty if nothing."""
    folder = Path(path)
    # A link could have been put there by another user, and leads wherever they like.
    if folder.is_symlink():
        return f"{path!r} is a link, not a state directory"
    if not folder.exists():
        return f"{path!r} does not exist"
    return "" if folder.is_dir() else f"{path!r} is not a directory"


STATE_DIR = Param(
    NAME,
    str,
    Arg(description="the state directory, as the first step reported it"),
    default=None,
    check=check_state_dir,
)
"""The input that a skill with state declares."""


def state_directory(
    prefix: str, files: Mapping[str, str]
) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Returns what prepares a run: it creates a state directory unless the run was given one.

    `files` are the texts of the files that a new one starts with, by name.
    """

    def prepare(params: Mapping[str, Any]) -> dict[str, Any]:
        if params.get(NAME) is not None:
            return {}
        return {NAME: str(_create(prefix, files))}

    return prepare


def need_state_dir(params: Mapping[str, Any]) -> Path:
    """Returns the state directory of a run or a step; raises `UsageError` if it is unusable."""
    path = params.get(NAME)
    if path is None:
        raise UsageError("the state directory is missing; use the one that the first step created")
    if problem := check_state_dir(path):
        raise UsageError(f"the state directory {problem}")
    return Path(path)


def _create(prefix: str, files: Mapping[str, str]) -> Path:
    parent = _parent()
    # A random name: two skills that start at the same moment must not share their files, and nobody
    # else can prepare a folder of that name.
    folder = parent / f"{prefix}-{os.urandom(6).hex()}"
    with translate_write_errors(folder):
        make_private_folder(folder)
        try:
            for name, text in files.items():
                with os.fdopen(create_private(folder / name), "w", encoding="utf-8") as file:
                    file.write(text)
        # Also on Ctrl-C: a later command would take half of the files for a whole state.
        except BaseException:
            import shutil

            shutil.rmtree(folder, ignore_errors=True)
            raise
    return folder


def _parent() -> Path:
    """Returns where state directories are created: in the project, else in the temporary folder."""
    # A project's own folder is preferred, because files in the temporary folder may be removed
    # before a long skill ends.
    home = find_home_folder(Path.cwd(), os.environ)
    if home is None:
        from tempfile import gettempdir

        return Path(gettempdir())
    folder = home / FOLDER
    with translate_write_errors(folder):
        make_private_folders(folder)
        # Like runs, the state of skills stays on this machine.
        with (
            suppress(FileExistsError),
            os.fdopen(create_private(folder / ".gitignore"), "w", encoding="utf-8") as file,
        ):
            file.write("*\n")
    return folder
