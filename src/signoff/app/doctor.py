"""Checks everything a run needs on this machine, and how to fix what is not ready."""

from __future__ import annotations

import asyncio
import inspect
import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from signoff import plugins
from signoff.agents.base import Health
from signoff.app.agents import build_agents, check_agents, roles_without_agent
from signoff.app.hand_over import dispatcher_of
from signoff.app.home import ELSEWHERE, Home, find_home
from signoff.app.next_commands import next_command, next_commands
from signoff.app.observers import observer_problems
from signoff.app.project import open_store
from signoff.app.run_records import live_rows, living_workers, stored_statuses, worker_for
from signoff.app.settings import (
    AgentSettings,
    Settings,
    database_file,
    load_settings,
    unknown_variables,
)
from signoff.app.trust import check_trust
from signoff.core.outcome import Status
from signoff.documents.python_files import make_importable
from signoff.errors import ConfigError, NotTrusted, SignoffError, StoreDamaged, StoreTooNew
from signoff.remedies import CheckSetup, InitProject, ShowSettings, StartWorker, TrustProject
from signoff.runtime.amounts import count
from signoff.runtime.ports import Capabilities, capabilities_of
from signoff.runtime.store_port import Store

FREE_BYTES = 500_000_000
"""Free space below which a long run is at risk."""

CLOCK_SECONDS = 5.0
"""How far this machine's clock may be off: due times and deadlines are read on it."""

_RESTORE = "restore a backup, or move the file away to start over"

_REMEDIES: Mapping[type[SignoffError], str] = {
    StoreTooNew: "upgrade signoff",
    StoreDamaged: _RESTORE,
}
"""For a database that cannot be opened."""

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
    begun: bool = False
    """Whether somebody began to set it up here: there is a program or a key."""

    @property
    def wanted(self) -> bool:
        """Whether it is always shown; an agent that no settings name is shown only if ready."""
        return self.named or self.begun or self.capabilities is None


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


Look = Callable[[Mapping[str, AgentSettings]], Mapping[str, Health]]
"""Returns the health of every agent, configured or not."""


def check_setup(cwd: Path, environment: Mapping[str, str], look: Look | None = None) -> SetupReport:
    """Checks everything a run needs; changes nothing."""
    checks = tuple(_checks(cwd, environment, look or check_agents))
    ready = [c.capabilities for c in checks if c.ready and c.capabilities is not None]
    models = [each for each in ready if each.is_model]
    # A model that is too small to review does not count: runs would not choose it either.
    if any(each.judges for each in models):
        return SetupReport(checks)
    setup = next_command(CheckSetup())
    return SetupReport(checks, tuple(line.format(setup=setup) for line in _NO_AGENT))


def _checks(cwd: Path, environment: Mapping[str, str], look: Look) -> Iterator[Check]:
    detail = f"{platform.python_version()}, SQLite {sqlite3.sqlite_version}"
    yield Check("python", sys.version_info >= (3, 11), detail, "use Python 3.11 or newer")
    try:
        home = find_home(cwd, environment)
    except SignoffError as error:
        yield Check("project", False, str(error), next_command(InitProject()))
        return
    settings = None
    try:
        settings = load_settings(home, environment)
        yield Check("settings", True, "read without problems")
    except ConfigError as error:
        first, *others = str(error).splitlines()
        more = f" (and {len(others)} more)" if others else ""
        yield Check("settings", False, first + more, "fix the file")
    if home is not None and settings is not None:
        try:
            check_trust(home, settings)
        except NotTrusted as error:
            # Nothing that they name is started, imported or asked.
            lines = f"{error.count} lines need it, such as {error.lines[0]}"
            detail = f"{error.home} is not trusted: {lines}"
            yield Check("trust", False, detail, next_command(TrustProject()))
            return
    yield from _folders(cwd, home)
    if home is not None:
        make_importable([home.root])
        if settings is not None:
            yield from _database(home, settings)
    configured = settings.agents if settings is not None else {}
    yield from _agents(configured, look(configured))
    if settings is not None:
        yield from _names(settings, home.root if home else cwd)
    yield from _variables(environment)


def _names(settings: Settings, root: Path) -> Iterator[Check]:
    """Checks that roles and observers name what exists."""
    roles = [("roles", each) for each in roles_without_agent(settings)]
    observers = [("observers", each) for each in observer_problems(settings, root)]
    for name, problem in [*roles, *observers]:
        detail = f"{problem.where}: {problem.what}"
        remedy = problem.remedy or "fix the settings"
        yield Check(name, False, detail, remedy, needed=False, named=True)


def _variables(environment: Mapping[str, str]) -> Iterator[Check]:
    keys = [name for name in API_KEYS if environment.get(name)]
    remedy = f"set one to call models directly: {', '.join(API_KEYS)}"
    yield Check("API keys", bool(keys), ", ".join(keys) or "none set", remedy, needed=False)
    if unknown := unknown_variables(environment):
        remedy = f"check the spelling; {next_command(ShowSettings())}"
        yield Check("environment", False, f"unknown: {', '.join(unknown)}", remedy, needed=False)


def _folders(cwd: Path, home: Home | None) -> Iterator[Check]:
    if home is None:
        detail = "no .signoff/ here or above"
        remedy = f"{next_command(InitProject())} (or start a run, which creates it)"
        if _writable(cwd):
            yield Check("project", False, detail, remedy, needed=False)
        else:
            yield Check("project", False, f"{detail}, and {cwd} is not writable", ELSEWHERE)
        return
    yield Check("project", True, str(home.path))
    for name, folder in (("home", home.path), ("runs", home.runs)):
        # A missing folder can be created if its parent is writable.
        existing = folder if folder.exists() else folder.parent
        writable = _writable(existing)
        detail = f"{folder} is {'' if writable else 'not '}writable"
        yield Check(f"{name} folder", writable, detail, f"chmod u+rwx {existing}, or {ELSEWHERE}")
    free = shutil.disk_usage(home.path).free
    detail, is_full = f"{free / 1e9:.1f} GB free", free < 10_000_000
    yield Check("disk", free >= FREE_BYTES, detail, "free some space", needed=is_full)


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)


def _database(home: Home, settings: Settings) -> Iterator[Check]:
    try:
        file = database_file(settings.database, home.path)
        if file is not None and not file.exists():
            yield Check("database", True, f"{file} will be created by the first run")
            return
        with closing(open_store(home, settings)) as store:
            found = store.health()
            is_server = store.local_file() is None
            workers = list(_workers(store, is_server=is_server))
    except SignoffError as error:
        remedy = "; ".join(next_commands(error.remedies)) or _REMEDIES.get(type(error), "")
        other = f"check its address and permissions; {next_command(ShowSettings())}"
        yield Check("database", False, str(error), remedy or other)
        return
    if found.problem:
        yield Check("database", False, f"{found.location}: {found.problem}", _RESTORE)
        return
    detail = f"{found.location}, tables version {found.schema}, {found.size / 1e6:.1f} MB, intact"
    yield Check("database", True, detail)
    yield from workers
    if settings.dispatch:
        yield _dispatcher(settings.dispatch)
    if is_server:
        ahead = found.clock_ahead
        detail = f"{abs(ahead):.1f} s {'behind' if ahead > 0 else 'ahead of'} the database's"
        synchronized = abs(ahead) <= CLOCK_SECONDS
        yield Check("clock", synchronized, detail, "synchronize the clocks (NTP)", needed=False)


def _workers(store: Store, *, is_server: bool) -> Iterator[Check]:
    """Checks that there is a worker for every queued run.

    For a file it says nothing if there are neither: a worker starts by itself when it is needed.
    """
    workers = living_workers(store)
    stored = store.rows(status=tuple(stored_statuses([Status.QUEUED])))
    rows = [row for row in live_rows(store, stored) if row.status is Status.QUEUED]
    if not workers and not rows:
        if is_server:
            detail = "none is running; runs that are handed over wait for one"
            yield Check("workers", False, detail, next_command(StartWorker()), needed=False)
        return
    used, slots = sum(each.running for each in workers), sum(each.slots for each in workers)
    detail = f"{count(len(workers), 'worker')}, {used} of {slots} slots in use, {len(rows)} queued"
    stuck = next((row for row in rows if row.reason), None)
    if stuck is None:
        yield Check("workers", True, detail, needed=False)
        return
    detail = f"{detail}; run {stuck.name!r} waits: {stuck.reason}"
    yield Check("workers", False, detail, next_command(worker_for(store, stuck)), needed=False)


def _dispatcher(url: str) -> Check:
    try:
        detail = asyncio.run(dispatcher_of(url, "doctor").check())
    except SignoffError as error:
        return Check("dispatcher", False, str(error), "start it, or fix `dispatch` in the settings")
    return Check("dispatcher", True, detail)


def _agents(
    configured: Mapping[str, AgentSettings], found: Mapping[str, Health]
) -> Iterator[Check]:
    built = build_agents(configured)
    for name, health in found.items():
        detail, remedy = health.detail, health.remedy
        if not health.ready:
            detail, remedy = _problem(name, configured.get(name, AgentSettings(name)), health)
        begun = not health.ready and not (health.absent or health.remedies)
        can = capabilities_of(built.get(name))
        yield Check(name, health.ready, detail, remedy, False, can, name in configured, begun)


def _problem(name: str, settings: AgentSettings, health: Health) -> tuple[str, str]:
    """Returns what an agent that is not ready needs, in terms of its settings, and the remedy."""
    if missing := _missing_options(settings):
        needs = " and ".join(missing)
        remedy = f"add {needs} to agents.{name} in the settings (see docs/agents.md)"
        return f"agent {name!r} needs {needs}, which its settings do not set", remedy
    remedy = "; ".join([*filter(None, [health.remedy]), *next_commands(health.remedies)])
    remedy = remedy or "see docs/agents.md for what it needs"
    return health.detail.removesuffix(f": {remedy}"), remedy


def _missing_options(settings: AgentSettings) -> list[str]:
    """Returns the required options of a built-in kind that the settings do not set."""
    import_path = plugins.AGENT_KINDS.get(settings.kind)
    if import_path is None:
        return []
    parameters = inspect.signature(plugins.load(import_path)).parameters.values()
    required = [
        each.name
        for each in parameters
        if each.kind is each.KEYWORD_ONLY and each.default is each.empty
    ]
    # `agents` is passed by `build_agent` and never comes from the settings.
    return [name for name in required if name not in {*settings.options, "agents"}]
