"""Decides what of a project needs its user's trust: settings, constraints, workflows, modules.

A setting that is not known to be harmless needs trust, so that one which is added later, here or by
a plug-in, does too. Definitions in YAML need it where they name programs, functions or databases,
or raise a limit of the user; Python files need it as a whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from signoff import plugins
from signoff.agents.kinds import USER_PROGRAMS, WITHOUT_SETTINGS
from signoff.app.settings.home import Home, expected_home
from signoff.app.settings.settings import Layer, Settings, database_file, load_settings, mask
from signoff.core.outcome import Status
from signoff.documents.files import read_text
from signoff.documents.regular_files import read_regular
from signoff.documents.trust import TrustLine, remember, require, untrusted
from signoff.notation import YAML_SUFFIXES, CompileContext
from signoff.runtime.ports import AgentLimits

if TYPE_CHECKING:
    from signoff.app.settings.project import Project

_ALWAYS_HARMLESS = ("log_level", "log_format")
_PRESENCE = "approvals.presence"
_HARMLESS_OF_AGENTS = (
    *("model", "fallback", "effort", "temperature", "max_tokens", "timeout", "file"),
    *(each.name for each in fields(AgentLimits)),
)
_HARMLESS = re.compile(rf"roles\..+|agents\..+\.({'|'.join(_HARMLESS_OF_AGENTS)})")
"""Settings that need no trust, unless they replace a setting of the user's own file."""
_HARMLESS_KINDS = frozenset({*WITHOUT_SETTINGS, "scripted"})
"""Kinds of agent that do nothing which they would not do without settings."""
_MAY_MATTER = re.compile(r"script|command|database|limits|notation|\\\\|\w:\w")
"""What a text with such values has in it; a backslash may write any of these words."""
_KEYS = frozenset(
    {"script", "scripts", "allow_scripts", "command", "database", "limits", "notation"}
)
"""Keys of definitions whose values need trust."""
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
"""`package.module:function`, which is imported wherever it is written."""
_LIMITS = ("usd", "tokens", "calls", "seconds")
FOLDERS = ("flows", "profiles", "skills")
"""The folders of a home with definitions that are found by name."""


def check_trust(home: Home, settings: Settings, definitions: str = "") -> None:
    """Raises `NotTrusted` unless the user trusts what the project's settings may do.

    `definitions` also asks for those in a folder of its home, or of one file there.
    """
    if settings.trusts_all or not home.path.is_dir():
        return
    lines = [*setting_lines(settings), *_definition_lines(home, settings, "constraints")]
    if definitions:
        lines += _definition_lines(home, settings, definitions)
    require(home.path, lines, os.environ)


def check_setting(home: Home, settings: Settings, key: str) -> None:
    """Raises `NotTrusted`, which asks nobody, unless the user trusts a setting of the project."""
    if not settings.trusts_all:
        require(home.path, setting_lines(settings, key), os.environ, asks=False)


def check_stored_target(home: Home, settings: Settings, target: str) -> None:
    """Raises `NotTrusted` unless the user trusts the database of a stored run, and its target.

    Targets outside of the home were named by path, by whoever made the database.
    """
    if not settings.trusts_all:
        file_lines = _file_lines(home, settings, home.root, target)
        require(home.path, [*database_lines(home, settings), *file_lines], os.environ)


def trust_database(home: Home, settings: Settings) -> None:
    """Remembers that the user has made the database of a project."""
    with suppress(OSError):
        # If it cannot be stored, the user is asked when a run is resumed.
        remember(home.path, database_lines(home, settings), os.environ)


def database_lines(home: Home, settings: Settings) -> Iterator[TrustLine]:
    """Yields the line of a database file in the project: whoever made it chose what its runs name.

    It is known by the moment in which it was made, which nobody else can guess.
    """
    import sqlite3

    file = database_file(settings.database, home.path)
    # Links are kept: only the address of another file is the user's own word.
    if file is None or not Path(os.path.abspath(file)).is_relative_to(home.root):  # noqa: PTH100
        return
    if not file.is_file() or not file.stat().st_size:
        return
    made: object = "unreadable"
    with suppress(sqlite3.Error):
        address = f"file:{quote(str(file.absolute()))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as db:
            (made,) = db.execute("SELECT min(applied_at) FROM schema_migrations").fetchone()
    shown = os.path.relpath(file, home.root)
    yield TrustLine(shown, f"its runs are resumed, with the files they name (made at {made!r})")


def trust_target(home: Home, settings: Settings, cwd: Path, target: str) -> None:
    """Remembers that the user has named a file of the home as a target."""
    lines = _file_lines(home, settings, cwd, target)
    with suppress(OSError):
        # If it cannot be stored, the user is asked when the run is resumed.
        remember(home.path, lines, os.environ)


def context_here() -> CompileContext:
    """Returns what finding definitions around the current folder needs: no agents."""
    home = expected_home(Path.cwd(), os.environ)
    settings = load_settings(home, os.environ)
    return CompileContext(
        root=home.root,
        home=home.path,
        settings=settings.sections,
        workflows=settings.workflows,
        agents={},
        trust=partial(check_trust, home, settings),
    )


def all_lines(home: Home, settings: Settings) -> list[TrustLine]:
    """Returns every line of a project that needs trust."""
    folders = ("constraints", *FOLDERS)
    found = [each for name in folders for each in _definition_lines(home, settings, name)]
    return [*setting_lines(settings), *found, *database_lines(home, settings)]


def untrusted_lines(project: Project) -> list[TrustLine]:
    """Returns the lines that the user has not trusted yet, while runs wait to be continued."""
    unfinished = (Status.QUEUED, Status.INTERRUPTED, Status.WAITING, Status.PARKED)
    if project.settings.trusts_all or not project.store.rows(status=unfinished, limit=1):
        return []
    return untrusted(project.home.path, all_lines(project.home, project.settings), os.environ)


def _file_lines(home: Home, settings: Settings, cwd: Path, target: str) -> list[TrustLine]:
    """Returns the lines of the file that is a target; none if it is not in the home."""
    file = cwd / Path(re.sub(r"(?<=\.py):\w+$", "", target)).expanduser()
    absolute = Path(os.path.abspath(file))  # noqa: PTH100  # keeps links, as the home's path does
    if not absolute.is_relative_to(home.path) or not absolute.is_file():
        return []
    return list(_definition_lines(home, settings, str(absolute.relative_to(home.path))))


# Settings


def setting_lines(settings: Settings, only: str = "") -> Iterator[TrustLine]:
    """Yields the lines of a project's settings that need trust, or that of a single setting."""
    for key, setting in settings.project.items():
        if only in ("", key) and _needs_trust(key, setting.value, settings.own):
            file, _, number = setting.origin.rpartition(":")
            name = "/".join(Path(file).parts[-2:])
            yield TrustLine(name, f"{key}: {_shown(key, setting.value)}", int(number))


def _needs_trust(key: str, value: Any, user: Layer) -> bool:
    # The order matters: what the user has set is compared with that first. Everything that no line
    # below names needs trust.
    section, _, name = key.partition(".")
    if section == "limits":
        return _raises(name, value, user)
    if key in _ALWAYS_HARMLESS or (key == _PRESENCE and value == "required"):
        return False
    # A project that says what its user says changes nothing.
    if key in user:
        return bool(user[key].value != value)
    # The agent is the user's own, perhaps with their key or program. Any further option of a
    # project could turn it against them.
    agent = name.rpartition(".")[0]
    if section == "agents" and any(each.startswith(f"agents.{agent}.") for each in user):
        return True
    if isinstance(value, str) and value in _own_programs(user):
        return True
    if section == "agents" and key.endswith(".kind"):
        return value not in _HARMLESS_KINDS
    return not (_HARMLESS.fullmatch(key) or _is_harmless_of_notation(section, name))


def _is_harmless_of_notation(section: str, name: str) -> bool:
    own = (each.settings for each in plugins.notations())
    harmless = next((each.harmless for each in own if each and each.name == section), ())
    return any(f"{name}.".startswith(f"{each}.") for each in harmless)


def _own_programs(user: Layer) -> set[str]:
    """Returns the agents of the user's own settings that are programs or functions."""
    kinds = {key: each.value for key, each in user.items() if key.endswith(".kind")}
    return {
        key.removeprefix("agents.").removesuffix(".kind")
        for key, kind in kinds.items()
        if key.startswith("agents.") and (kind in USER_PROGRAMS or ":" in str(kind))
    }


def _raises(name: str, value: Any, user: Mapping[str, Any]) -> bool:
    """Whether a limit of a project is above the user's own; None lifts it."""
    own = user.get(f"limits.{name}")
    if own is None or own.value is None:
        return False
    return not isinstance(value, int | float) or value > own.value


def _shown(key: str, value: Any) -> str:
    """Returns a value as JSON, with a digest in the place of a secret."""
    text, masked = (json.dumps(each, default=str) for each in (value, mask(key, value)))
    if text == masked:
        return text
    return f"{masked} ({hashlib.sha256(text.encode()).hexdigest()[:12]})"


# Definitions


def _definition_lines(home: Home, settings: Settings, name: str) -> Iterator[TrustLine]:
    # A Python file is trusted as a whole. Of YAML only the lines count that can do something, so
    # that editing a text asks nobody.
    for path in _files(home.path / name):
        shown = str(Path(home.path.name) / path.relative_to(home.path))
        if path.suffix == ".py":
            yield _python_line(path, shown)
        else:
            yield from _yaml_lines(path, shown, settings)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path] if path.is_file() else []
    suffixes = (".py", *YAML_SUFFIXES)
    return sorted(each for each in path.rglob("*") if each.suffix in suffixes and each.is_file())


def _python_line(path: Path, shown: str) -> TrustLine:
    try:
        content = read_regular(path, None, follow=True)
    except OSError as error:
        return TrustLine(shown, f"cannot be read: {error.strerror}")
    lines, digest = content.count(b"\n"), hashlib.sha256(content).hexdigest()
    return TrustLine(shown, f"is imported: {lines} lines of Python, digest {digest[:16]}")


def _yaml_lines(path: Path, shown: str, settings: Settings) -> Iterator[TrustLine]:
    from signoff.documents.yaml_text import read_yaml

    # What cannot be read is reported by whoever compiles it.
    text, programs = read_text(path, []), _own_programs(settings.own)
    if text is None or not (_MAY_MATTER.search(text) or any(each in text for each in programs)):
        return
    document = read_yaml(text, shown, [])
    for where, value in _leaves(document.content if document is not None else None):
        if document is not None and _is_sensitive(where, value, programs, settings.own):
            # Without positions in lists: another step above it changes nothing.
            name = ".".join(each for each in where if isinstance(each, str))
            said = json.dumps(value, default=str)
            yield TrustLine(shown, f"{name}: {said}", document.line(where))


def _is_sensitive(
    where: tuple[str | int, ...], value: Any, programs: Collection[str], user: Layer
) -> bool:
    if isinstance(value, str) and (_FUNCTION.fullmatch(value.strip()) or value in programs):
        return True
    # Any key on the way counts, since a program may be nested in a list of steps or in a loop.
    keys = _KEYS.intersection(map(str, where))
    if keys == {"limits"}:
        return where[-1] in _LIMITS and _raises(str(where[-1]), value, user)
    if keys == {"notation"}:
        # What other packages read is not known here.
        return value not in plugins.NOTATIONS
    return bool(keys) and value not in (None, "", False)


def _leaves(value: Any, where: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Yields every single value of a document, with the keys that lead to it.

    A list of texts, such as a program with its arguments, is one value.
    """
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _leaves(each, (*where, key))
    elif isinstance(value, list):
        if where and where[-1] in _KEYS and all(isinstance(each, str) for each in value):
            yield where, value
            return
        for position, each in enumerate(value):
            yield from _leaves(each, (*where, position))
    else:
        yield where, value
