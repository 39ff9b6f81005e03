"""Says what is ready on this machine, and what to do about what is not."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from signoff.app.config import unknown_variables
from signoff.app.home import Home, find_home
from signoff.app.project import database_path, open_store
from signoff.app.settings import Settings, load_settings
from signoff.errors import ConfigError, SignoffError, StoreBusy, StoreDamaged, StoreTooNew

PATIENCE_SECONDS = 5.0
"""How long a program may take to tell its version."""

FREE_BYTES = 500_000_000
"""Free space below which a long run is at risk."""

AGENT_PROGRAMS: Mapping[str, str] = {
    "claude": "install Claude Code to use it",
    "codex": "install the Codex CLI to use it",
    "gemini": "install the Gemini CLI to use it",
    "ollama": "install Ollama to run models on this machine",
}
API_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    ready: bool
    detail: str
    remedy: str = ""
    """What to do; empty when it is ready."""
    needed: bool = True
    """Whether the engine cannot run without it."""


@dataclass(frozen=True)
class Examined:
    """Everything that was looked at."""

    checks: tuple[Check, ...]

    @property
    def can_run(self) -> bool:
        """Whether the engine can run."""
        return all(check.ready for check in self.checks if check.needed)


Ask = Callable[[str], str | None]
"""Returns what a program says its version is, or None when it does not answer."""


def examine(cwd: Path, environment: Mapping[str, str], ask: Ask | None = None) -> Examined:
    """Looks at everything a run needs; changes nothing."""
    return Examined(tuple(_checks(cwd, environment, ask or ask_version)))


def ask_version(program: str) -> str | None:
    """Asks a program for its version, for a few seconds at most."""
    try:
        answer = subprocess.run(
            [program, "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = (answer.stdout or answer.stderr).strip().splitlines()
    return said[0][:80] if answer.returncode == 0 and said else None


def _checks(cwd: Path, environment: Mapping[str, str], ask: Ask) -> Iterator[Check]:
    yield _python()
    try:
        home = find_home(cwd, environment)
    except SignoffError as error:
        yield Check("project", ready=False, detail=str(error), remedy="signoff init")
        return
    settings = None
    try:
        settings = load_settings(home, environment)
    except ConfigError as error:
        lines = str(error).splitlines()
        more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
        yield Check("settings", ready=False, detail=lines[0] + more, remedy="mend the file")
    else:
        yield Check("settings", ready=True, detail="read without problems")
    yield from _project(home, settings)
    yield from (_program(name, remedy, environment, ask) for name, remedy in AGENT_PROGRAMS.items())
    yield _keys(environment)
    yield from _variables(environment)


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    detail = f"{version}, SQLite {sqlite3.sqlite_version}"
    return Check("python", sys.version_info >= (3, 11), detail, "use Python 3.11 or newer")


def _project(home: Home | None, settings: Settings | None) -> Iterator[Check]:
    if home is None:
        yield Check(
            "project",
            ready=False,
            detail="no .signoff/ here or above",
            remedy="signoff init (or just run something: it is made on the first run)",
            needed=False,
        )
        return
    yield Check("project", ready=True, detail=str(home.path))
    yield from _permissions(home)
    yield _disk(home)
    if settings is not None:
        yield _database(home, settings)


def _permissions(home: Home) -> Iterator[Check]:
    for name, folder in (("home", home.path), ("runs", home.runs)):
        # A folder that is not there yet is made where the one above it can be written.
        looked = folder if folder.exists() else folder.parent
        writable = os.access(looked, os.W_OK | os.X_OK)
        detail = f"{folder} can be written" if writable else f"{folder} cannot be written"
        yield Check(f"{name} folder", writable, detail, f"chmod u+rwx {looked}")
    if home.runs.is_dir() and home.runs.stat().st_mode & 0o077 and os.name == "posix":
        yield Check(
            "privacy",
            ready=False,
            detail=f"{home.runs} can be read by others",
            remedy=f"chmod -R go-rwx {home.runs}",
            needed=False,
        )


def _disk(home: Home) -> Check:
    free = shutil.disk_usage(home.path).free
    detail = f"{free / 1e9:.1f} GB free"
    return Check("disk", free >= FREE_BYTES, detail, "free some space", needed=free < 10_000_000)


def _database(home: Home, settings: Settings) -> Check:
    try:
        path = database_path(home, settings)
        if not path.exists():
            return Check("database", ready=True, detail=f"{path} is made by the first run")
        open_store(home, settings).close()
        version, verdict = _integrity(path)
    except (SignoffError, sqlite3.Error) as error:
        return Check("database", ready=False, detail=str(error), remedy=_mend(error))
    if verdict != "ok":
        remedy = f"move {path.name} away, or restore a backup beside it"
        return Check("database", ready=False, detail=f"{path}: {verdict}", remedy=remedy)
    size = path.stat().st_size / 1e6
    return Check("database", ready=True, detail=f"{path}, schema {version}, {size:.1f} MB, sound")


def _mend(error: Exception) -> str:
    match error:
        case StoreTooNew():
            return "upgrade signoff"
        case StoreDamaged() | sqlite3.DatabaseError():
            return "restore a backup from beside it, or move it away to start afresh"
        case StoreBusy():
            return "end the process that holds it, or try again"
        case _:
            return "check its path (`signoff config show`) and permissions"


def _integrity(path: Path) -> tuple[int, str]:
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        version = int(database.execute("PRAGMA user_version").fetchone()[0])
        return version, str(database.execute("PRAGMA quick_check(1)").fetchone()[0])
    finally:
        database.close()


def _program(name: str, remedy: str, environment: Mapping[str, str], ask: Ask) -> Check:
    found = shutil.which(name, path=environment.get("PATH"))
    if found is None:
        return Check(name, ready=False, detail="not on PATH", remedy=remedy, needed=False)
    version = ask(found)
    if version is None:
        return Check(
            name,
            ready=False,
            detail=f"{found} does not answer",
            remedy=f"see what it says: {name} --version",
            needed=False,
        )
    return Check(name, ready=True, detail=f"{found}, {version}", needed=False)


def _keys(environment: Mapping[str, str]) -> Check:
    there = [name for name in API_KEYS if environment.get(name)]
    if there:
        return Check("API keys", ready=True, detail=", ".join(there), needed=False)
    return Check(
        "API keys",
        ready=False,
        detail="none set",
        remedy=f"set one to call models directly: {', '.join(API_KEYS)}",
        needed=False,
    )


def _variables(environment: Mapping[str, str]) -> Iterator[Check]:
    unknown = unknown_variables(environment)
    if unknown:
        yield Check(
            "environment",
            ready=False,
            detail=f"unknown: {', '.join(unknown)}",
            remedy="check the spelling; `signoff config show` lists what holds",
            needed=False,
        )
