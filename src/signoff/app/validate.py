"""Checks definitions without running anything, and reports every problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from signoff.app.agent_settings import unknown_kinds, unloadable, unplayed_roles
from signoff.app.discovery import discover
from signoff.app.home import Home, expected_home
from signoff.app.notations import compile_context
from signoff.app.settings import Settings, load_settings
from signoff.app.targets import resolve
from signoff.errors import ConfigError, InvalidWorkflow, Problem, UsageError
from signoff.notation import CompileContext


@dataclass(frozen=True)
class ValidationResult:
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
    targets: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    options: Mapping[str, Any] | None = None,
) -> list[ValidationResult]:
    """Checks the settings and the targets; without any, all workflows that have a name."""
    home = expected_home(cwd, environment)
    try:
        settings = load_settings(home, environment)
    except ConfigError as error:
        problems = (Problem("settings", line) for line in str(error).splitlines())
        return [ValidationResult("settings", None, tuple(problems))]
    context = compile_context(home, settings, options, cwd=cwd)
    context = replace(context, check_only=True)
    own = list(_settings(home, settings))
    if not targets:
        return [*own, *_all(home, settings, context)]
    return [*own, *(_one(target, cwd, home, settings, context) for target in targets)]


def _settings(home: Home, settings: Settings) -> Iterator[ValidationResult]:
    """Yields what is wrong with agents that were set up, as far as that is cheap to see."""
    problems = (*unknown_kinds(settings), *unplayed_roles(settings))
    remarks = tuple(unloadable(settings, home.root))
    if problems or remarks:
        yield ValidationResult("settings", None, problems, remarks)


def _one(
    target: str, cwd: Path, home: Home, settings: Settings, context: CompileContext
) -> ValidationResult:
    try:
        found = resolve(target, cwd=cwd, home=home, places=settings.workflows, context=context)
    except InvalidWorkflow as error:
        return ValidationResult(target, None, tuple(error.problems))
    except UsageError as error:
        return ValidationResult(target, None, (Problem(target, str(error)),))
    return ValidationResult(target, found.workflow.name, remarks=found.workflow.warnings)


def _all(home: Home, settings: Settings, context: CompileContext) -> list[ValidationResult]:
    looked = discover(home, home.root, settings.workflows, context)
    checked = [
        ValidationResult(str(found.path), found.workflow.name, remarks=found.workflow.warnings)
        for found in looked.found
    ]
    if looked.problems:
        checked.append(ValidationResult("discovery", None, looked.problems))
    return checked
