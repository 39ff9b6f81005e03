"""Finds the `.signoff/` folder of a project: from a folder upwards, as git does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from signoff.errors import UsageError
from signoff.remedies import InitProject

FOLDER = ".signoff"
VARIABLE = "SIGNOFF_HOME"
"""The environment variable that names the folder instead."""


def find_home_folder(start: Path, environment: Mapping[str, str]) -> Path | None:
    """Returns the `.signoff/` folder of the project around `start`; None if there is none."""
    path = named_home_folder(start, environment)
    if path is None:
        candidates = (folder / FOLDER for folder in (start, *start.parents))
        return next((folder for folder in candidates if folder.is_dir()), None)
    if not path.is_dir():
        what = f"{VARIABLE} names {path}, which is not a folder"
        raise UsageError(what, remedy=InitProject())
    return path


def named_home_folder(start: Path, environment: Mapping[str, str]) -> Path | None:
    """Returns the folder that the environment names, whether or not it exists."""
    override = environment.get(VARIABLE)
    return start / Path(override).expanduser() if override else None
