"""What the commands of profiles share: the project's folder, and the session they are about."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from signoff.cli.options import complete_run, entered_folder
from signoff.cli.text import near
from signoff.errors import UsageError
from signoff.remedies import ShowRun

if TYPE_CHECKING:
    from signoff.app.project import Project
    from signoff.app.settings import Settings
    from signoff.notation import CompileContext
    from signoff.runtime.store_port import RunRow

F = TypeVar("F", bound=Callable[..., Any])

NOTATION = "profiles"
_TARGETS = "profile:"
_RECENT = 50


def session_argument(command: F) -> F:
    """Adds the optional name of a session."""
    return click.argument(
        "session", required=False, metavar="[SESSION]", shell_complete=complete_run
    )(command)


def context_here() -> CompileContext:
    """Returns what finding profiles in the project around the current folder needs: no agents."""
    from signoff.app.home import expected_home
    from signoff.app.trust import trust_of
    from signoff.notation import CompileContext

    home, settings = expected_home(Path.cwd(), os.environ), settings_here()
    return CompileContext(
        root=home.root,
        home=home.path,
        settings=settings.sections,
        agents={},
        trust=trust_of(home, settings),
    )


def settings_here() -> Settings:
    """Returns the settings of the project around the current folder."""
    from signoff.app.home import expected_home
    from signoff.app.settings import load_settings

    return load_settings(expected_home(Path.cwd(), os.environ), os.environ)


def find_session(project: Project, name: str | None) -> RunRow:
    """Returns a session by its run's name, or the latest one."""
    if name is not None:
        row = project.run(name)
        if not is_session(project, row):
            raise UsageError(
                f"run {row.name!r} is not a session of a profile", remedy=ShowRun(name)
            )
        return row
    for limit in (_RECENT, -1):
        for row in project.store.rows(limit=limit):
            if is_session(project, row):
                return row
    raise UsageError("there are no sessions yet; start one: signoff profile init NAME")


def is_session(project: Project, row: RunRow) -> bool:
    """Tells whether a run is a session of a profile."""
    if row.target:
        return row.target.startswith(_TARGETS)
    # A run that was started from Python does not record its target.
    found = project.notation_of(row)
    return found is not None and found.name == NOTATION


def shown_path(path: Path) -> str:
    """Returns a path as the user's shell sees it, which `--project-dir` leaves where it is."""
    entered = entered_folder()
    if entered is None:
        return near(path)
    before, _ = entered
    return str(path.relative_to(before)) if path.is_relative_to(before) else str(path)


def project_dir_words() -> str:
    """Returns the option for a command that is run in the same shell; empty without it."""
    entered = entered_folder()
    return f" --project-dir {shlex.quote(str(entered[1]))}" if entered is not None else ""
