"""Checks before a run: everything it needs on this machine, and what definitions say."""

from __future__ import annotations

import asyncio
import os
import platform
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from signoff import plugins
from signoff.agents.base import Health
from signoff.app.runs.next_commands import next_command, next_commands
from signoff.app.runs.run_records import live_rows, living_workers, stored_statuses, worker_for
from signoff.app.runs.start import StartPlan
from signoff.app.runs.targets import Target, compile_context, discover, resolve
from signoff.app.settings import agents as agent_checks
from signoff.app.settings import settings as config
from signoff.app.settings.home import ELSEWHERE, Home, expected_home, find_home
from signoff.app.settings.observers import observer_problems
from signoff.app.settings.project import open_store
from signoff.app.settings.trust import check_trust
from signoff.app.workers.hand_over import dispatcher_of
from signoff.core import errors as er
from signoff.core.amounts import count
from signoff.core.outcome import Status
from signoff.core.remedies import CheckSetup, InitProject, ShowSettings, StartWorker, TrustProject
from signoff.documents.discovery import Discovery
from signoff.documents.python_files import make_importable
from signoff.notation import CompileContext
from signoff.runtime.ports import Capabilities, capabilities_of
from signoff.runtime.store_port import Store

CLOCK_SECONDS = 5.0
"""How far this machine's clock may be off: due times and deadlines are read on it."""

_RESTORE = "restore a backup, or move the file away to start over"

API_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")

_NO_AGENT = (
    "a chat window in your browser: use the agent `manual`, and paste prompts and answers",
    "a vendor account: install claude, codex or gemini and log in; {setup}",
    "no account: run a model that can review on this machine, with Ollama (https://ollama.com)",
)
"""What a user without an agent that can review can do, the easiest option first."""


@dataclass(frozen=True)
class Check:
    """The result of one check."""

    name: str
    ready: bool
    detail: str
    remedy: str = ""
    """How to fix it; empty if it is ready."""
    needed: bool = True
    """Whether the engine cannot run without it."""
    capabilities: Capabilities | None = None
    """What an agent can do; None for anything else."""
    named: bool = False
    """Whether the settings name it."""
    wanted: bool = True
    """Whether it is always shown; what nobody began to set up here is shown only if ready."""


@dataclass(frozen=True)
class SetupReport:
    """The results of all checks."""

    checks: tuple[Check, ...]
    advice: tuple[str, ...] = ()
    """How to set up a first agent; empty if one is ready."""

    @property
    def can_run(self) -> bool:
        """Whether the engine can run."""
        return all(check.ready for check in self.checks if check.needed)

    @property
    def unusable(self) -> tuple[str, ...]:
        """What the settings name but is not ready; runs that do not need it still work."""
        return tuple(c.name for c in self.checks if c.named and not c.ready)


Look = Callable[[Mapping[str, config.AgentSettings]], Mapping[str, Health]]
"""Returns the health of every agent, configured or not."""


def check_setup(cwd: Path, environment: Mapping[str, str], look: Look | None = None) -> SetupReport:
    """Checks everything a run needs; changes nothing."""
    checks = tuple(_checks(cwd, environment, look or agent_checks.check_agents))
    ready = [c.capabilities for c in checks if c.ready and c.capabilities is not None]
    models = [each for each in ready if each.is_model]
    # A model that is too small to review does not count: runs would not choose it either.
    if any(each.judges for each in models):
        return SetupReport(checks)
    setup = next_command(CheckSetup())
    return SetupReport(checks, tuple(line.format(setup=setup) for line in _NO_AGENT))


def _checks(cwd: Path, environment: Mapping[str, str], look: Look) -> Iterator[Check]:
    yield Check("python", True, f"{platform.python_version()}, SQLite {sqlite3.sqlite_version}")
    try:
        home = find_home(cwd, environment)
        settings = config.load_settings(home, environment)
    except er.SignoffError as error:
        # They say what else there is to look at.
        first, *others = str(error).splitlines()
        more = f" (and {len(others)} more)" if others else ""
        yield Check("settings", False, first + more, "fix the file")
        return
    yield Check("settings", True, "read without problems")
    try:
        if home is not None:
            check_trust(home, settings)
    except er.NotTrusted as error:
        # Nothing that they name is started, imported or asked.
        lines = f"{error.count} lines need it, such as {error.lines[0]}"
        detail = f"{error.home} is not trusted: {lines}"
        yield Check("trust", False, detail, next_command(TrustProject()))
        return
    # What is cheap and most likely wrong comes first; agents are asked last, since that takes
    # seconds.
    yield _folder(cwd, home)
    if home is not None:
        make_importable([home.root])
        yield from _database(home, settings)
    yield from _agents(settings.agents, look(settings.agents))
    yield from _names(settings, home.root if home else cwd)
    yield from _variables(environment)


def _names(settings: config.Settings, root: Path) -> Iterator[Check]:
    """Checks that roles and observers name what exists."""
    roles = [("roles", each) for each in agent_checks.roles_without_agent(settings)]
    observers = [("observers", each) for each in observer_problems(settings, root)]
    for name, problem in [*roles, *observers]:
        detail = f"{problem.where}: {problem.what}"
        remedy = problem.remedy or "fix the settings"
        yield Check(name, False, detail, remedy, needed=False, named=True)


def _variables(environment: Mapping[str, str]) -> Iterator[Check]:
    keys = [name for name in API_KEYS if environment.get(name)]
    remedy = f"set one to call models directly: {', '.join(API_KEYS)}"
    yield Check("API keys", bool(keys), ", ".join(keys) or "none set", remedy, needed=False)
    if unknown := config.unknown_variables(environment):
        remedy = f"check the spelling; {next_command(ShowSettings())}"
        yield Check("environment", False, f"unknown: {', '.join(unknown)}", remedy, needed=False)


def _folder(cwd: Path, home: Home | None) -> Check:
    folder = cwd if home is None else home.path
    if not os.access(folder, os.W_OK | os.X_OK):
        return Check("project", False, f"{folder} is not writable", ELSEWHERE)
    if home is None:
        remedy = f"{next_command(InitProject())} (or start a run, which creates it)"
        return Check("project", False, "no .signoff/ here or above", remedy, needed=False)
    return Check("project", True, str(folder))


def _database(home: Home, settings: config.Settings) -> Iterator[Check]:
    try:
        file = config.database_file(settings.database, home.path)
        if file is not None and not file.exists():
            yield Check("database", True, f"{file} will be created by the first run")
            return
        with closing(open_store(home, settings)) as store:
            found = store.health()
            is_server = store.local_file() is None
            workers = _workers(store, is_server=is_server)
    except er.SignoffError as error:
        other = f"check its address and permissions, or {_RESTORE}; {next_command(ShowSettings())}"
        other = "upgrade signoff" if isinstance(error, er.StoreTooNew) else other
        remedy = "; ".join(next_commands(error.remedies)) or other
        yield Check("database", False, str(error), remedy)
        return
    if found.problem:
        yield Check("database", False, f"{found.location}: {found.problem}", _RESTORE)
        return
    detail = f"{found.location}, tables version {found.schema}, {found.size / 1e6:.1f} MB, intact"
    yield Check("database", True, detail)
    yield from filter(None, [workers])
    if settings.dispatch:
        yield _dispatcher(settings.dispatch)
    if is_server:
        ahead = found.clock_ahead
        detail = f"{abs(ahead):.1f} s {'behind' if ahead > 0 else 'ahead of'} the database's"
        synchronized = abs(ahead) <= CLOCK_SECONDS
        yield Check("clock", synchronized, detail, "synchronize the clocks (NTP)", needed=False)


def _workers(store: Store, *, is_server: bool) -> Check | None:
    """Checks that there is a worker for every queued run.

    None for a file with neither: a worker starts by itself when it is needed.
    """
    workers = living_workers(store)
    stored = store.rows(status=tuple(stored_statuses([Status.QUEUED])))
    rows = [row for row in live_rows(store, stored) if row.status is Status.QUEUED]
    if not workers and not rows:
        detail, remedy = "none is running", next_command(StartWorker())
        return Check("workers", False, detail, remedy, needed=False) if is_server else None
    used, slots = sum(each.running for each in workers), sum(each.slots for each in workers)
    detail = f"{count(len(workers), 'worker')}, {used} of {slots} slots in use, {len(rows)} queued"
    stuck = next((row for row in rows if row.reason), None)
    if stuck is None:
        return Check("workers", True, detail, needed=False)
    detail = f"{detail}; run {stuck.name!r} waits: {stuck.reason}"
    remedy = next_command(worker_for(store, stuck))
    return Check("workers", False, detail, remedy, needed=False)


def _dispatcher(url: str) -> Check:
    try:
        detail = asyncio.run(dispatcher_of(url, "doctor").check())
    except er.SignoffError as error:
        return Check("dispatcher", False, str(error), "start it, or fix `dispatch` in the settings")
    return Check("dispatcher", True, detail)


def _agents(
    configured: Mapping[str, config.AgentSettings], found: Mapping[str, Health]
) -> Iterator[Check]:
    built = agent_checks.build_agents(configured)
    for name, health in found.items():
        remedy = "; ".join([*filter(None, [health.remedy]), *next_commands(health.remedies)])
        remedy = remedy or "see docs/agents.md for what it needs"
        detail = health.detail.removesuffix(f": {remedy}")
        named = name in configured
        # There is a program or a key: somebody began to set it up.
        wanted = named or not (health.ready or health.absent or health.remedies)
        can = capabilities_of(built.get(name))
        yield Check(name, health.ready, detail, remedy, False, can, named, wanted)


@dataclass(frozen=True)
class ValidationResult:
    """The result of checking one target, the settings or a workflow that discovery found."""

    target: str
    workflow: str | None
    """Its name; None for settings, or if there are problems."""
    problems: tuple[er.Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    """Warnings for its author; it can still be run."""

    @property
    def valid(self) -> bool:
        """Whether it could be run."""
        return not self.problems

    @property
    def strict(self) -> ValidationResult:
        """The result if a warning counts as a problem."""
        problems = tuple(er.Problem(self.target, each) for each in self.warnings)
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
        settings = config.load_settings(home, environment)
        check_trust(home, settings)
    except er.ConfigError as error:
        lines = tuple(er.Problem("settings", line) for line in str(error).splitlines())
        return [ValidationResult("settings", None, lines)]
    # Files that only a run needs may be missing: authors check a flow long before they have a goal.
    context = compile_context(home, settings, options, cwd=cwd, check_only=True)

    def check(target: str, find: Callable[[], Target]) -> ValidationResult:
        try:
            planned = StartPlan(find(), {}, settings.limits, None, home, settings)
            planned.replacements(agents or {})
            dry_run = planned.dry_run()
        except er.InvalidWorkflow as error:
            return ValidationResult(target, None, tuple(error.problems))
        except er.UsageError as error:
            return ValidationResult(target, None, (er.Problem(target, str(error)),))
        workflow, about_files = planned.target.workflow, dry_run.warnings if dry_run else ()
        return ValidationResult(target, workflow.name, warnings=(*workflow.warnings, *about_files))

    found = {each: partial(resolve, each, cwd, context, settings.workflows) for each in targets}
    # What several workflows use is reported once.
    problems: dict[er.Problem, None] = {}
    for each in () if targets else _discoveries(context, settings):
        found |= {str(one.path): partial(Target, one.workflow, str(one.path)) for one in each.found}
        problems |= dict.fromkeys(each.problems)
    checked = [check(name, find) for name, find in found.items()]
    if problems:
        checked.append(ValidationResult("discovery", None, tuple(problems)))
    return [*_check_settings(home, settings, environment), *checked]


def _discoveries(context: CompileContext, settings: config.Settings) -> Iterator[Discovery]:
    yield discover(context, settings.workflows)
    for each in plugins.notations():
        if each.discover:
            yield plugins.load(each.discover)(context)


def _check_settings(
    home: Home, settings: config.Settings, environment: Mapping[str, str]
) -> Iterator[ValidationResult]:
    """Yields the problems of configured agents that can be found without calling them."""
    problems = (
        *agent_checks.unknown_kinds(settings),
        *agent_checks.unknown_options(settings, home.root),
        *agent_checks.roles_without_agent(settings),
        *observer_problems(settings, home.root),
    )
    warnings = (
        *agent_checks.import_errors(settings, home.root),
        *agent_checks.missing_needs(settings, environment),
    )
    if problems or warnings:
        yield ValidationResult("settings", None, problems, warnings)
