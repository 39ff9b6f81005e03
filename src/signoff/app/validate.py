"""Checks settings and workflows without running anything, and reports every problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from signoff import plugins
from signoff.app.agents import (
    import_errors,
    missing_needs,
    roles_without_agent,
    unknown_kinds,
    unknown_options,
    unusable_files,
)
from signoff.app.home import Home, expected_home
from signoff.app.notations import compile_context
from signoff.app.observers import observer_problems
from signoff.app.settings import Settings, load_settings
from signoff.app.start import StartPlan
from signoff.app.targets import Target, discover, resolve
from signoff.app.trust import check_trust
from signoff.errors import ConfigError, InvalidWorkflow, Problem, UsageError
from signoff.notation import CompileContext

Checked = tuple[str, Sequence[str]]
"""The name of a workflow that could be run, and warnings for its author."""


@dataclass(frozen=True)
class ValidationResult:
    """The result of checking one target, the settings or a workflow that discovery found."""

    target: str
    workflow: str | None
    """Its name; None for settings, or if there are problems."""
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    """Warnings for its author; it can still be run."""

    @property
    def valid(self) -> bool:
        """Whether it could be run."""
        return not self.problems

    @property
    def strict(self) -> ValidationResult:
        """The result if a warning counts as a problem."""
        problems = tuple(Problem(self.target, each) for each in self.warnings)
        return replace(self, problems=(*self.problems, *problems), warnings=())


def validate(
    targets: Sequence[str],
    cwd: Path,
    environment: Mapping[str, str],
    options: Mapping[str, Any] | None = None,
    agents: Mapping[str, str] | None = None,
) -> list[ValidationResult]:
    """Checks the settings and the targets; without targets, all workflows with a name.

    `agents` are those that runs of the targets would replace, as `StartPlan.replacements` takes
    them.
    """
    home = expected_home(cwd, environment)
    try:
        settings = load_settings(home, environment)
        check_trust(home, settings)
    except ConfigError as error:
        problems = (Problem("settings", line) for line in str(error).splitlines())
        return [ValidationResult("settings", None, tuple(problems))]
    context = compile_context(home, settings, options, cwd=cwd, check_only=True)
    own = list(_check_settings(home, settings, environment))

    def start_plan(found: Target) -> StartPlan:
        return StartPlan(found, {}, settings.limits, None, home, settings)

    if not targets:
        return [*own, *_check_all(settings, context, start_plan)]

    def check(target: str) -> Checked:
        planned = start_plan(resolve(target, cwd, context, settings.workflows))
        planned.replacements(agents or {})
        return _check_files(planned)

    return [*own, *(_result(target, partial(check, target)) for target in targets)]


def _check_settings(
    home: Home, settings: Settings, environment: Mapping[str, str]
) -> Iterator[ValidationResult]:
    """Yields the problems of configured agents that can be found without calling them."""
    problems = (
        *unknown_kinds(settings),
        *unknown_options(settings, home.root),
        *unusable_files(settings, home.root),
        *roles_without_agent(settings),
        *observer_problems(settings, home.root),
    )
    warnings = (*import_errors(settings, home.root), *missing_needs(settings, environment))
    if problems or warnings:
        yield ValidationResult("settings", None, problems, warnings)


def _result(target: str, check: Callable[[], Checked]) -> ValidationResult:
    try:
        name, warnings = check()
    except InvalidWorkflow as error:
        return ValidationResult(target, None, tuple(error.problems))
    except UsageError as error:
        return ValidationResult(target, None, (Problem(target, str(error)),))
    return ValidationResult(target, name, warnings=tuple(warnings))


def _check_files(planned: StartPlan) -> Checked:
    """Returns what is odd about a workflow and the files that a run of it would read."""
    workflow, dry_run = planned.target.workflow, planned.dry_run()
    about_files = dry_run.warnings if dry_run is not None else ()
    return workflow.name, (*workflow.warnings, *about_files)


def _check_all(
    settings: Settings, context: CompileContext, start_plan: Callable[[Target], StartPlan]
) -> list[ValidationResult]:
    everything = [discover(context, settings.workflows)]
    everything += [
        plugins.load(each.discover)(context) for each in plugins.notations() if each.discover
    ]
    checked = [
        _result(
            str(found.path),
            partial(_check_files, start_plan(Target(found.workflow, str(found.path)))),
        )
        for discovery in everything
        for found in discovery.found
    ]
    # What several workflows use is reported once.
    problems = dict.fromkeys(each for discovery in everything for each in discovery.problems)
    if problems:
        checked.append(ValidationResult("discovery", None, tuple(problems)))
    return checked
