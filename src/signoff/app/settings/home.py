"""The project home: the `.signoff/` folder that holds a project's settings, flows and runs.

It is searched from the current folder upwards, as git does, unless `SIGNOFF_HOME` names
it. Creating one never overwrites anything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from signoff.core.errors import UsageError, WriteFailed
from signoff.core.remedies import InitProject, ShowSettings
from signoff.documents.home_folder import FOLDER, VARIABLE, find_home_folder, named_home_folder
from signoff.documents.regular_files import make_private_folders

ELSEWHERE = f"use another folder: set {VARIABLE}=FOLDER and create it there"
"""How to fix a folder that is not writable."""


@dataclass(frozen=True)
class Home:
    """The home folder of a project and its parts."""

    path: Path

    @property
    def root(self) -> Path:
        """The folder of the project itself."""
        return self.path.parent

    @property
    def config(self) -> Path:
        """The project's settings file."""
        return self.path / "config.yaml"

    @property
    def constraints(self) -> Path:
        """The constraints on artifacts, one file each."""
        return self.path / "constraints"

    @property
    def passkeys(self) -> Path:
        """The public keys of those who can sign approvals."""
        return self.path / "passkeys.json"

    @property
    def flows(self) -> Path:
        """Workflows that can be run by name."""
        return self.path / "flows"

    @property
    def schemas(self) -> Path:
        """JSON schemas that editors use to complete and check flows, constraints and goals."""
        return self.path / "schemas"

    @property
    def runs(self) -> Path:
        """One readable folder per run."""
        return self.path / "runs"

    def private_folder(self, name: str) -> Path:
        """Returns a folder that is never committed and that no other user can read."""
        folder = self.path / name
        make_private_folders(folder)
        # Homes are often under version control, and this folder must never be.
        ignore = folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", "utf-8")
        return folder


@dataclass(frozen=True)
class InitResult:
    """The result of initializing a project."""

    home: Home
    created: tuple[Path, ...]
    """Empty if everything existed already."""
    existing: tuple[Path, ...] = ()
    """Files of the preset that exist with other content."""
    changed: tuple[Path, ...] = ()
    """The settings, if the preset has added its own to them."""
    to_add: str = ""
    """Settings of the preset that the user has to add: the file has others with the same keys."""
    run: tuple[str, ...] = ()
    """The target and the options to check and run the preset with, in the project's root."""
    external: bool = False
    """Whether external workers do the work of the preset's runs."""


def find_home(start: Path, environment: Mapping[str, str]) -> Home | None:
    """Returns the home of the project around `start`, or None when there is none."""
    path = find_home_folder(start, environment)
    return Home(path) if path is not None else None


def expected_home(start: Path, environment: Mapping[str, str]) -> Home:
    """Returns the home of the project around `start`, or the one a run would create there."""
    return find_home(start, environment) or Home(start / FOLDER)


def need_home(start: Path, environment: Mapping[str, str]) -> Home:
    """Returns the home of the project around `start`; raises `UsageError` if there is none."""
    home = find_home(start, environment)
    if home is None:
        raise UsageError(f"no {FOLDER}/ here or in any folder above", remedy=InitProject())
    return home


def init_home(start: Path, environment: Mapping[str, str]) -> InitResult:
    """Creates the missing parts of a home in `start`; existing files are not changed."""
    home = Home(named_home_folder(start, environment) or start / FOLDER)
    created = []
    try:
        for folder in (home.path, home.constraints, home.flows):
            if not folder.is_dir():
                folder.mkdir(parents=True, mode=0o755)
                created.append(folder)
        texts = {home.config: "config.yaml", home.path / ".gitignore": "gitignore"}
        created += [path for path, name in texts.items() if write_new(path, template(name))]
    except OSError as error:
        why = error.strerror or error
        raise WriteFailed(
            f"cannot create {home.path}: {why}; {ELSEWHERE}", remedy=InitProject()
        ) from error
    return InitResult(home, tuple(created))


def template(name: str) -> str:
    """Returns the text of a file as `init` writes it."""
    from importlib.resources import files

    from signoff.app.runs.next_commands import next_command

    text = (files("signoff.app") / "templates" / name).read_text("utf-8")
    return text.replace("{command}", next_command(ShowSettings()))


def write_new(path: Path, text: str) -> bool:
    """Writes a file unless it exists; returns whether it did.

    Settings and flows decide what is executed, so other users must not be able to write
    them, whatever the umask.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return True
