"""The project home: the `.signoff/` folder that holds a project's settings, flows and runs.

It is found upwards from where a person stands, as git finds its own. `SIGNOFF_HOME`
names it directly. Making one never overwrites anything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from signoff.app.next_commands import next_command
from signoff.errors import UsageError, WriteFailed
from signoff.remedies import InitProject, ShowSettings

FOLDER = ".signoff"
VARIABLE = "SIGNOFF_HOME"

ELSEWHERE = f"use another folder: set {VARIABLE}=FOLDER and create it there"
"""What to do where nothing is writable."""

CONFIG = f"""\
# Settings of this project, all optional; {next_command(ShowSettings())}
# Settings for all your projects go in ~/.config/signoff/config.yaml; this file overrides them.
version: 1

# What one run may cost at most; a limit given when a run starts overrides it.
# limits:
#   usd: 5.00
#   tokens: 2000000
#   calls: 500
#   seconds: 3600

# Agents answer prompts. `kind` is a built-in kind, or your own `package.module:factory`.
# claude, codex, gemini, ollama, openai, anthropic, local, manual and auto need no settings.
# agents:
#   claude:
#     concurrency: 4
#     rate: 10/min
#     fallback: codex
#   mine:
#     kind: my_package.agents:build

# Which agent plays each role.
# roles:
#   developer: claude

# Where workflows are found by name, besides flows/: Python files that assign WORKFLOW, in
# folders (relative to the project's root) or modules.
# workflows:
#   - workflows
#   - my_package.workflows

# log_level: warning
"""

IGNORE = """\
# Flows, constraints and settings are shared; runs and their database stay on this machine.
signoff.db*
runs/
backups/
"""


@dataclass(frozen=True)
class Home:
    """Where a project keeps its things."""

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
        """What artifacts must satisfy, one file each."""
        return self.path / "constraints"

    @property
    def flows(self) -> Path:
        """Workflows that can be run by name."""
        return self.path / "flows"

    @property
    def schemas(self) -> Path:
        """What editors complete and check flows, constraints and goals by."""
        return self.path / "schemas"

    @property
    def runs(self) -> Path:
        """One readable folder per run."""
        return self.path / "runs"


@dataclass(frozen=True)
class Initialised:
    """What making a home did."""

    home: Home
    created: tuple[Path, ...]
    """Empty when everything was there already."""


def find_home(start: Path, environment: Mapping[str, str]) -> Home | None:
    """Returns the home of the project around `start`, or None when there is none."""
    named = environment.get(VARIABLE)
    if named:
        return _named_home(start, named)
    for folder in (start, *start.parents):
        if (folder / FOLDER).is_dir():
            return Home(folder / FOLDER)
    return None


def expected_home(start: Path, environment: Mapping[str, str]) -> Home:
    """Returns the home of the project around `start`, or the one a run would make there."""
    return find_home(start, environment) or Home(start / FOLDER)


def need_home(start: Path, environment: Mapping[str, str]) -> Home:
    """Returns the home of the project around `start`, or says how to make one."""
    home = find_home(start, environment)
    if home is None:
        raise UsageError(f"no {FOLDER}/ here or in any folder above", remedy=InitProject())
    return home


def init_home(start: Path, environment: Mapping[str, str]) -> Initialised:
    """Makes what is missing of a home in `start` and leaves what is there alone."""
    named = environment.get(VARIABLE)
    home = Home(_absolute(start, named) if named else start / FOLDER)
    created = []
    try:
        for folder in (home.path, home.constraints, home.flows):
            if not folder.is_dir():
                folder.mkdir(parents=True, mode=0o755)
                created.append(folder)
        for path, text in ((home.config, CONFIG), (home.path / ".gitignore", IGNORE)):
            if write_new(path, text):
                created.append(path)
    except OSError as error:
        why = error.strerror or error
        raise WriteFailed(
            f"cannot create {home.path}: {why}; {ELSEWHERE}", remedy=InitProject()
        ) from error
    return Initialised(home, tuple(created))


def write_new(path: Path, text: str) -> bool:
    """Writes a file unless there is one; tells whether it did.

    Settings and flows decide what runs, so nobody else may write them, whatever the umask.
    """
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        return False
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return True


def _named_home(start: Path, named: str) -> Home:
    path = _absolute(start, named)
    if not path.is_dir():
        raise UsageError(f"{VARIABLE} names {path}, which is not a folder", remedy=InitProject())
    return Home(path)


def _absolute(start: Path, named: str) -> Path:
    return start / Path(named).expanduser()
