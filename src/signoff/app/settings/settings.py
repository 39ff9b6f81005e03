"""The settings of a project, and where each value comes from.

Layers from lowest to highest precedence: built-in values, the user's file, the project's
file, the environment, the command line. A layer overrides single values, never a whole
section. All mistakes in all layers are reported at once.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

from signoff.app.settings.home import Home
from signoff.core.errors import ConfigError, Problem
from signoff.core.spend import Limits
from signoff.documents.files import read_text
from signoff.documents.trust import trusts_all
from signoff.runtime.paths import path_from
from signoff.runtime.ports import AgentLimits

FILE = "sqlite"
"""The scheme of a database that is a file; so is an address without one."""
SCHEME = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)

FILES_ONLY = ("pass_env", "approvals.presence")
"""Settings that no variable sets: what programs get to see, and what a human has to sign."""

OTHER_VARIABLES = frozenset(
    {"SIGNOFF_HOME", "SIGNOFF_CONFIG", "SIGNOFF_MODELS", "SIGNOFF_TRUST", "SIGNOFF_WORKER_TOKEN"}
)
"""Environment variables that are not settings."""

_SECRET = re.compile(r"(key|token|secrets?|password|credentials?)$", re.IGNORECASE)
"""Keys whose values are masked; not `tokens`, which is a number that users need to see."""
_PASSWORD = re.compile(r"(?<=://)[^/@]*(?=@)|(?<=password=)[^&]+")
"""The user and password in a URL, and passwords among its options."""

_HOST_ONLY = re.compile(r"^(\w+://[^/?#]*)[/?#].*$")
"""An address with more than its host."""

COMMAND_LINE = "command line"
BUILT_IN_ORIGIN = "built-in"


class Value(NamedTuple):
    """One setting and its origin."""

    value: Any
    origin: str
    path: tuple[str, ...]
    """The keys that lead to it in a file: the name of an agent may contain dots (`gpt-4.1`)."""


Layer = Mapping[str, Value]
"""Settings of one origin, by dotted key."""


@dataclass(frozen=True)
class AgentSettings:
    """The settings of one agent."""

    kind: str
    limits: AgentLimits = field(default_factory=AgentLimits)
    fallback: str | None = None
    """The agent that answers if this one cannot."""
    price: Mapping[str, float] | None = None
    """Dollars per million tokens: `in`, `out`, and optionally `cached` and `cache_write`.

    None means the price list."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options that are specific to the kind of agent."""
    folder: Path | None = field(default=None, compare=False)
    """Where relative paths in its options start; None means the current folder."""

    def located(self, names: Iterable[str]) -> dict[str, Any]:
        """Returns the options; those of these names are paths, which start at the folder."""
        start = str(self.folder or "")
        paths = {each: self.options[each] for each in names if each in self.options}
        texts = {each: path_from(start, path) for each, path in paths.items() if type(path) is str}
        return {**self.options, **texts}


@dataclass(frozen=True)
class ObserverSettings:
    """The settings of one observer."""

    kind: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Settings:
    """All settings in force, and in `values` where each comes from."""

    limits: Limits = field(default_factory=Limits)
    agents: Mapping[str, AgentSettings] = field(default_factory=dict)
    roles: Mapping[str, str] = field(default_factory=dict)
    workflows: Sequence[str] = ()
    """Folders and modules that are searched for workflows by name."""
    pass_env: Sequence[str] = ()
    """Additional environment variables that are passed to commands and scripts."""
    database: str = "signoff.db"
    """A file path relative to the project home, or the URL of a store."""
    dispatch: str = ""
    """The URL of what brings runs to workers; empty if they look into the database."""
    log_level: str = "warning"
    log_format: str = "text"
    log_file: str = ""
    """A file path relative to the project home; empty means stderr."""
    log_content: bool = False
    """Whether prompts, replies and inputs may appear in logs and traces."""
    presence_required: bool = False
    """Whether every approval needs the signature of a passkey, not only those that declare it."""
    notify: Sequence[Mapping[str, Any]] = ()
    """Programs and webhooks that are notified when a run stops."""
    observe: Mapping[str, ObserverSettings] = field(default_factory=dict)
    """Observers of every run, by name."""
    sections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The sections of notations, by name."""
    values: Layer = field(default_factory=dict)
    own: Layer = field(default_factory=dict)
    """What the user's own file sets."""
    project: Layer = field(default_factory=dict)
    """What the project's file sets."""
    trusts_all: bool = False
    """Whether the environment trusts every project."""

    @property
    def is_observed(self) -> bool:
        """Whether runs have observers of the settings; most have none, and load nothing for it."""
        return bool(self.observe or self.notify) or self.has_log

    @property
    def logs_json_lines(self) -> bool:
        """Whether standard error has log records as JSON, for programs to read."""
        return self.log_format == "json" and not self.log_file

    @property
    def has_log(self) -> bool:
        """Whether runs are logged; not as text on stderr, where their progress is shown."""
        return bool(self.log_file) or self.log_format == "json"

    @property
    def run_log_level(self) -> str:
        """The least level of records about runs: `info` unless the user has set one."""
        level = self.values.get("log_level")
        return "info" if level is None or level.origin == BUILT_IN_ORIGIN else self.log_level

    def masked(self) -> Layer:
        """Returns every setting in force, by key, with secrets masked."""
        return {
            key: setting._replace(value=mask(key, setting.value))
            for key, setting in sorted(self.values.items())
        }


_PLAIN = ("workflows pass_env database dispatch log_level log_format log_file log_content").split()
"""Settings that are one value, with the same name in files and here."""

# The defaults are those of `Settings`: a second list of them would sooner or later differ.
BUILT_IN: Mapping[str, Any] = {
    **{f"limits.{name}": None for name in ("usd", "tokens", "calls", "seconds")},
    **{name: getattr(Settings, name) for name in _PLAIN},
    "approvals.presence": "declared",
}
"""The default values."""

ENVIRONMENT: Mapping[str, str] = {
    f"SIGNOFF_{key.replace('.', '_').upper()}": key for key in BUILT_IN if key not in FILES_ONLY
}
"""Environment variables and their settings, except those of notations."""


def mask(key: str, value: Any) -> Any:
    """Returns the value of a setting as it may be shown."""
    if key == "notify":
        # The path of a webhook's address is often all that protects it.
        return [
            {
                name: _HOST_ONLY.sub(r"\1/***", each) if name == "webhook" else each
                for name, each in entry.items()
            }
            for entry in value
        ]
    if _SECRET.search(key) and value:
        return "***"
    return _PASSWORD.sub("***", value) if isinstance(value, str) else value


def database_file(address: str, folder: Path) -> Path | None:
    """Returns the file of an address, relative to a folder; None if it names another store."""
    scheme = SCHEME.match(address)
    if scheme is None:
        return folder / Path(address).expanduser()
    if scheme[1].lower() != FILE:
        return None
    # Three slashes for a relative path, four for an absolute one, as elsewhere.
    path = address[scheme.end() :].removeprefix("/")
    if not path:
        raise ConfigError(f"the address {address!r} names no file; write {FILE}:///path")
    return folder / path


def settings_files(home: Home | None, environment: Mapping[str, str]) -> list[Path]:
    """Returns the settings files, lowest precedence first, whether or not they exist."""
    return [user_file(environment), *([home.config] if home is not None else [])]


def user_file(environment: Mapping[str, str]) -> Path:
    """Returns the path of the user's settings file, whether or not it exists."""
    override = environment.get("SIGNOFF_CONFIG")
    if override:
        return Path(override).expanduser()
    if sys.platform == "win32" and environment.get("APPDATA"):
        return Path(environment["APPDATA"]) / "signoff" / "config.yaml"
    # As other programs do it, so that the file is where users look for it and where their backups
    # find it.
    base = environment.get("XDG_CONFIG_HOME")
    folder = Path(base) if base else Path.home() / ".config"
    return folder / "signoff" / "config.yaml"


def load_settings(
    home: Home | None,
    environment: Mapping[str, str],
    command_line: Mapping[str, Any] | None = None,
) -> Settings:
    """Reads all layers; raises one `ConfigError` that lists the problems of all of them."""
    problems: list[Problem] = []
    user = user_file(environment)
    if environment.get("SIGNOFF_CONFIG") and not user.exists():
        problems.append(Problem(str(user), "does not exist", "SIGNOFF_CONFIG names it"))
    built_in = {tuple(key.split(".")): value for key, value in BUILT_IN.items()}
    # Every layer is read before anything is reported, so that one try shows the mistakes of all of
    # them.
    layers = [_layer(built_in, lambda _path: BUILT_IN_ORIGIN)]
    folders: dict[str, Path] = {}
    for path in settings_files(home, environment):
        layers.append(_read_file(path, problems))
        names = {each.path[1] for each in layers[-1].values() if each.path[0] == "agents"}
        # A path in the project's file starts at the project, not at the folder of the file.
        of_project = home is not None and path == home.config
        folders |= dict.fromkeys(names, home.root if home and of_project else path.parent)
    layers.append(_check(_from_environment(environment), problems))
    layers.append(_check(_from_command_line(command_line or {}), problems))
    if problems:
        raise ConfigError("\n".join(str(problem) for problem in problems))
    return replace(
        _merge(layers, folders),
        own=layers[1],
        project=layers[2] if home is not None else {},
        trusts_all=trusts_all(environment),
    )


def variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the environment variables that are settings, with the key of each.

    Those of notations are loaded only if the environment has a variable that needs them.
    """
    known = dict(ENVIRONMENT)
    if _unknown(environment, known):
        from signoff import plugins

        for notation in plugins.notations():
            if (section := notation.settings) is not None:
                known |= {n: f"{section.name}.{key}" for n, key in section.environment.items()}
    return known


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Returns variables that look like settings but are unknown, often because of a typo."""
    return _unknown(environment, variables(environment))


def _unknown(environment: Mapping[str, str], known: Mapping[str, str]) -> list[str]:
    ours = {name for name in environment if name.startswith("SIGNOFF_")}
    return sorted(ours - known.keys() - OTHER_VARIABLES)


def command_line_limits(settings: Settings) -> Limits | None:
    """Returns the limits of the command line, which override even those of the workflow."""
    limits = {
        key.removeprefix("limits."): setting.value
        for key, setting in settings.values.items()
        if key.startswith("limits.") and setting.origin.startswith(COMMAND_LINE)
    }
    return Limits.from_json(limits) if limits else None


def _layer(leaves: Mapping[tuple[str, ...], Any], origin: Callable[[Any], str]) -> Layer:
    return {".".join(path): Value(value, origin(path), path) for path, value in leaves.items()}


def _read_file(path: Path, problems: list[Problem]) -> Layer:
    # The null device is the usual way to turn a settings file off; devices are not read otherwise.
    if path == Path(os.devnull) or not path.exists():
        return {}
    text = read_text(path, problems, name=str(path))
    if text is None or _is_empty(text):
        return {}
    from signoff.app.settings.config_schema import check_file
    from signoff.documents.yaml_text import read_yaml

    document = read_yaml(text, str(path), problems)
    return _layer(check_file(document, problems), document.at) if document is not None else {}


def _is_empty(text: str) -> bool:
    """Tells whether a file sets nothing, as `init` writes it, so that no schema is loaded."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#")] in ([], ["version: 1"])


_StoredAnswer = Iterator[tuple[str, Any, str]]
"""Keys, values that are texts, and origins."""


def _from_environment(environment: Mapping[str, str]) -> _StoredAnswer:
    for variable, key in variables(environment).items():
        text = environment.get(variable)
        if text:
            value: Any = list(filter(None, text.split(os.pathsep))) if key == "workflows" else text
            yield key, value, f"environment {variable}"


def _from_command_line(options: Mapping[str, Any]) -> _StoredAnswer:
    for key, value in options.items():
        section, _, name = key.partition(".")
        option = f"--{section.rstrip('s')} {name}" if name else f"--{section}"
        yield key, value, f"{COMMAND_LINE} {option}"


def _check(given: _StoredAnswer, problems: list[Problem]) -> Layer:
    raw: dict[str, Any] = {}
    origins: dict[tuple[str | int, ...], str] = {}
    for key, value, origin in given:
        path = tuple(key.split("."))
        _put(raw, path, value)
        origins[path] = origin
    if not raw:
        return {}
    from signoff.app.settings.config_schema import check

    def where(path: tuple[str | int, ...]) -> str:
        # A mistake may be about a whole section, which has no origin of its own. That of any of its
        # keys leads the user to the right place.
        return origins.get(path) or next((o for p, o in origins.items() if p[:1] == path[:1]), "")

    return _layer(check(raw, where, problems, strict=False), where)


def _merge(layers: Iterable[Layer], folders: Mapping[str, Path]) -> Settings:
    """Returns the settings of all layers, lowest precedence first.

    `folders` are where the paths of agents start, by agent.
    """
    values: dict[str, Value] = {}
    for layer in layers:
        values.update(layer)
    read: dict[str, Any] = {"agents": {}, "roles": {}, "observe": {}}
    # Each value is put where its keys lead. A later layer has replaced single values by now, so a
    # project that lowers one limit keeps the others of its user.
    for each in values.values():
        _put(read, each.path, each.value)
    limits = {name: value for name, value in read.pop("limits").items() if value is not None}
    agents, observe = read.pop("agents"), read.pop("observe")
    presence = read.pop("approvals")["presence"]
    own = {each.name: read.pop(each.name) for each in fields(Settings) if each.name in read}
    return Settings(
        **own,
        limits=Limits.from_json(limits),
        agents={name: _agent(name, each, folders.get(name)) for name, each in agents.items()},
        observe={n: ObserverSettings(each.pop("kind", n), each) for n, each in observe.items()},
        presence_required=presence == "required",
        sections=read,
        values=values,
    )


def _put(sections: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Stores a setting under the keys that lead to it."""
    *outer, last = path
    inner = sections
    for key in outer:
        inner = inner.setdefault(key, {})
    inner[last] = value


def _agent(name: str, options: dict[str, Any], folder: Path | None) -> AgentSettings:
    kind = options.pop("kind", None) or name
    limits = AgentLimits(**_taken(options, (each.name for each in fields(AgentLimits))))
    common = _taken(options, ("fallback", "price"))
    # What is left belongs to the kind of agent, which checks it when it is built: plug-ins bring
    # options that nobody knows here.
    return AgentSettings(kind, limits, **common, options=options, folder=folder)


def _taken(options: dict[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Takes the options of these names out of all of them."""
    return {each: options.pop(each) for each in names if each in options}


def unknown_option_problems(
    settings: Settings, owner: str, options: Iterable[str], known: Sequence[str]
) -> Iterator[Problem]:
    """Yields a problem for each unknown option, with its line; `owner` is as in `agents.claude`."""
    for option in sorted(set(options) - set(known)):
        # Imported only for a mistake: what reads forms takes long to load.
        from signoff.documents.mistakes import unknown_key

        _, remedy = unknown_key(option, known)
        where = origin_of(settings, f"{owner}.{option}", owner)
        yield Problem(where, f"{owner}: unknown option {option!r}", remedy)


def origin_of(settings: Settings, key: str, otherwise: str = "") -> str:
    """Returns where a setting comes from; `otherwise`, or its key, if nothing sets it."""
    value = settings.values.get(key)
    return value.origin if value is not None else otherwise or key
