"""Checks everything a run needs on this machine, and how to fix what is not ready."""

from __future__ import annotations

import inspect
import os
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
from signoff.app.home import ELSEWHERE, Home, find_home
from signoff.app.next_commands import next_command, next_commands
from signoff.app.project import database_path, open_store
from signoff.app.settings import AgentSettings, Settings, load_settings, unknown_variables
from signoff.documents.python_files import make_importable
from signoff.errors import ConfigError, SignoffError, StoreBusy, StoreDamaged, StoreTooNew
from signoff.remedies import CheckSetup, InitProject, Install, PullModel, ShowSettings
from signoff.runtime.ports import Capabilities, capabilities_of

FREE_BYTES = 500_000_000
"""Free space below which a long run is at risk."""

_RESTORE = "restore a backup, or move the file away to start over"

API_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")

_NO_AGENT = (
    "a chat window in your browser: use the agent `manual`, and paste prompts and answers",
    "a vendor account: install claude, codex or gemini and log in; {setup}",
    "no account: use a small model on this machine; {install}; {pull}",
)
"""What a user without any agent can do, the easiest option first."""


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

    @property
    def wanted(self) -> bool:
        """Whether it is always shown; an agent that no settings name is shown only if ready."""
        return self.named or self.capabilities is None


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
    models = (c for c in checks if c.capabilities is not None and c.capabilities.is_model)
    return SetupReport(checks, advice=() if any(c.ready for c in models) else _advice())


def _advice() -> tuple[str, ...]:
    setup, install = next_command(CheckSetup()), next_command(Install("local"))
    pull = next_command(PullModel("smollm2-135m"))
    return tuple(line.format(setup=setup, install=install, pull=pull) for line in _NO_AGENT)


def _checks(cwd: Path, environment: Mapping[str, str], look: Look) -> Iterator[Check]:
    yield _python()
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
    yield from _project(cwd, home, settings)
    if home is not None:
        make_importable([home.root])
    configured = settings.agents if settings is not None else {}
    yield from _agents(configured, look(configured))
    for problem in roles_without_agent(settings) if settings is not None else ():
        detail = f"{problem.where}: {problem.what}"
        yield Check("roles", False, detail, problem.remedy, needed=False, named=True)
    keys = [name for name in API_KEYS if environment.get(name)]
    yield Check(
        "API keys",
        bool(keys),
        ", ".join(keys) or "none set",
        f"set one to call models directly: {', '.join(API_KEYS)}",
        needed=False,
    )
    if unknown := unknown_variables(environment):
        remedy = f"check the spelling; {next_command(ShowSettings())}"
        yield Check("environment", False, f"unknown: {', '.join(unknown)}", remedy, needed=False)


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    detail = f"{version}, SQLite {sqlite3.sqlite_version}"
    return Check("python", sys.version_info >= (3, 11), detail, "use Python 3.11 or newer")


def _project(cwd: Path, home: Home | None, settings: Settings | None) -> Iterator[Check]:
    if home is None:
        detail = "no .signoff/ here or above"
        if not _writable(cwd):
            yield Check("project", False, f"{detail}, and {cwd} is not writable", ELSEWHERE)
            return
        remedy = f"{next_command(InitProject())} (or start a run, which creates it)"
        yield Check("project", False, detail, remedy, needed=False)
        return
    yield Check("project", True, str(home.path))
    yield from _permissions(home)
    free = shutil.disk_usage(home.path).free
    detail = f"{free / 1e9:.1f} GB free"
    yield Check("disk", free >= FREE_BYTES, detail, "free some space", needed=free < 10_000_000)
    if settings is not None:
        yield _database(home, settings)


def _permissions(home: Home) -> Iterator[Check]:
    for name, folder in (("home", home.path), ("runs", home.runs)):
        # A missing folder can be created if its parent is writable.
        existing = folder if folder.exists() else folder.parent
        writable = _writable(existing)
        detail = f"{folder} is {'' if writable else 'not '}writable"
        yield Check(f"{name} folder", writable, detail, f"chmod u+rwx {existing}, or {ELSEWHERE}")
    if home.runs.is_dir() and home.runs.stat().st_mode & 0o077 and os.name == "posix":
        detail = f"{home.runs} is readable by other users"
        yield Check("privacy", False, detail, f"chmod -R go-rwx {home.runs}", needed=False)


def _writable(folder: Path) -> bool:
    return os.access(folder, os.W_OK | os.X_OK)


def _database(home: Home, settings: Settings) -> Check:
    try:
        path = database_path(home, settings)
        if not path.exists():
            return Check("database", True, f"{path} will be created by the first run")
        open_store(home, settings).close()
        version, verdict = _integrity(path)
    except (SignoffError, sqlite3.Error) as error:
        return Check("database", False, str(error), _database_remedy(error))
    if verdict != "ok":
        return Check("database", False, f"{path}: {verdict}", _RESTORE)
    size = path.stat().st_size / 1e6
    return Check("database", True, f"{path}, schema {version}, {size:.1f} MB, intact")


def _database_remedy(error: Exception) -> str:
    match error:
        case StoreTooNew():
            return "upgrade signoff"
        case StoreDamaged() | sqlite3.DatabaseError():
            return _RESTORE
        case StoreBusy():
            return "stop the process that uses it, or try again later"
        case _:
            return f"check its path and permissions; {next_command(ShowSettings())}"


def _integrity(path: Path) -> tuple[int, str]:
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(uri, uri=True)) as database:
        version = int(database.execute("PRAGMA user_version").fetchone()[0])
        return version, str(database.execute("PRAGMA quick_check(1)").fetchone()[0])


def _agents(
    configured: Mapping[str, AgentSettings], found: Mapping[str, Health]
) -> Iterator[Check]:
    built = build_agents(configured)
    for name, health in found.items():
        settings = configured.get(name, AgentSettings(name))
        described = health if health.ready else _describe_problem(name, settings, health)
        yield Check(
            name,
            described.ready,
            described.detail,
            described.remedy,
            needed=False,
            named=name in configured,
            capabilities=capabilities_of(built.get(name)),
        )


def _describe_problem(name: str, settings: AgentSettings, health: Health) -> Health:
    """Returns what an agent that is not ready needs, in terms of its settings."""
    missing = _missing_options(settings)
    if missing:
        needs = " and ".join(missing)
        remedy = f"add {needs} to agents.{name} in the settings (see docs/agents.md)"
        return Health(False, f"agent {name!r} needs {needs}, which its settings do not set", remedy)
    remedy = "; ".join([*filter(None, [health.remedy]), *next_commands(health.remedies)])
    remedy = remedy or "see docs/agents.md for what it needs"
    return Health(False, health.detail.removesuffix(f": {remedy}"), remedy)


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
