"""Checks definitions without running anything, and reports every problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from signoff.app.agent_settings import unknown_kinds, unloadable, unplayed_roles
from signoff.app.discovery import discover
from signoff.app.home import Home, find_home
from signoff.app.notations import Told, as_said, tell
from signoff.app.settings import Settings, load_settings
from signoff.app.targets import resolve
from signoff.errors import ConfigError, InvalidWorkflow, Problem, UsageError


@dataclass(frozen=True)
class Checked:
    """What checking one target, or everything discovery finds, came to."""

    target: str
    workflow: str | None
    """Its name; None for settings, and where there are problems."""
    problems: tuple[Problem, ...] = ()
    remarks: tuple[str, ...] = ()
    """What its author should know though it can be run."""

    @property
    def valid(self) -> bool:
        """Whether it could be run."""
        return not self.problems


def validate(
    targets: Sequence[str], cwd: Path, environment: Mapping[str, str], goal: str | None = None
) -> list[Checked]:
    """Checks the settings and the targets; without any, all workflows that have a name."""
    home = find_home(cwd, environment)
    try:
        settings = load_settings(home, environment)
    except ConfigError as error:
        problems = (Problem("settings", line) for line in str(error).splitlines())
        return [Checked("settings", None, tuple(problems))]
    told = tell(settings, as_said({"goal": goal}, cwd, home)).check_only()
    own = list(_settings(cwd, home, settings))
    if not targets:
        return [*own, *_all(cwd, home, settings, told)]
    return [*own, *(_one(target, cwd, home, settings, told) for target in targets)]


def _settings(cwd: Path, home: Home | None, settings: Settings) -> Iterator[Checked]:
    """Yields what is wrong with agents that were set up, as far as that is cheap to see."""
    problems = (*unknown_kinds(settings), *unplayed_roles(settings))
    remarks = tuple(unloadable(settings, home.root if home is not None else cwd))
    if problems or remarks:
        yield Checked("settings", None, problems, remarks)


def _one(target: str, cwd: Path, home: Home | None, settings: Settings, told: Told) -> Checked:
    try:
        found = resolve(target, cwd=cwd, home=home, places=settings.workflows, told=told)
    except InvalidWorkflow as error:
        return Checked(target, None, tuple(error.problems))
    except UsageError as error:
        return Checked(target, None, (Problem(target, str(error)),))
    return Checked(target, found.workflow.name, remarks=found.workflow.remarks)


def _all(cwd: Path, home: Home | None, settings: Settings, told: Told) -> list[Checked]:
    root = home.root if home is not None else cwd
    looked = discover(home, root, settings.workflows, told)
    checked = [
        Checked(str(found.path), found.workflow.name, remarks=found.workflow.remarks)
        for found in looked.found
    ]
    if looked.problems:
        checked.append(Checked("discovery", None, looked.problems))
    return checked
