"""Finds the `.signoff/` folder of a project: from a folder upwards, as git does."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from signoff.core.errors import UsageError
from signoff.core.remedies import InitProject
from signoff.documents.trust import VARIABLE as TRUST
from signoff.documents.trust import trusts_all

FOLDER = ".signoff"
VARIABLE = "SIGNOFF_HOME"
"""The environment variable that names the folder instead."""


def find_home_folder(start: Path, environment: Mapping[str, str]) -> Path | None:
    """Returns the `.signoff/` folder of the project around `start`; None if there is none."""
    path = named_home_folder(start, environment)
    if path is None:
        candidates = (folder / FOLDER for folder in (start, *start.parents))
        path = next((folder for folder in candidates if folder.is_dir()), None)
    elif not path.is_dir():
        what = f"{VARIABLE} names {path}, which is not a folder"
        raise UsageError(what, remedy=InitProject())
    if path is not None and not trusts_all(environment):
        _refuse_strangers(path, environment)
    return path


def _refuse_strangers(path: Path, environment: Mapping[str, str]) -> None:
    """Raises if another user could change what the project's settings say, as in /tmp."""
    if not hasattr(os, "geteuid"):
        return
    known = {str(os.geteuid()), "0", environment.get("SUDO_UID") if os.geteuid() == 0 else None}
    # The owner of a link decides where it leads.
    owners = {path.stat().st_uid, path.lstat().st_uid}
    if strangers := [each for each in owners if str(each) not in known]:
        raise UsageError(
            f"{path} belongs to another user (id {strangers[0]}), who could change its settings; "
            f"work in a folder of your own, or trust that user: set {TRUST}=1"
        )


def named_home_folder(start: Path, environment: Mapping[str, str]) -> Path | None:
    """Returns the folder that the environment names, whether or not it exists."""
    override = environment.get(VARIABLE)
    return start / Path(override).expanduser() if override else None
