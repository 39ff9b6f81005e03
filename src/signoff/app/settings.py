"""The settings of a project, and where each value comes from.

Layers from lowest to highest precedence: built-in values, the user's file, the project's
file, the environment, the command line. A layer overrides single values, never a whole
section. All mistakes in all layers are reported at once.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from signoff.app.home import Home
from signoff.app.setting_layers import Layer, Rate, Value, parse_rate
from signoff.core.spend import Limits
from signoff.documents.files import read_text
from signoff.documents.trust import trusts_all
from signoff.errors import ConfigError, Problem
from signoff.runtime.paths import path_from

BUILT_IN: Mapping[str, Any] = {
    "limits.usd": None,
    "limits.tokens": None,
    "limits.calls": None,
    "limits.seconds": None,
    "workflows": (),
    "pass_env": (),
    "database": "signoff.db",
    "dispatch": "",
    "log_level": "warning",
    "log_format": "text",
    "log_file": "",
    "log_content": False,
    "approvals.presence": "declared",
}
"""The default values."""

FILE = "sqlite"
"""The scheme of a database that is a file; so is an address without one."""
SCHEME = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)

FILES_ONLY = ("pass_env", "approvals.presence")
"""Settings that no variable sets: what programs get to see, and what a human has to sign."""

ENVIRONMENT: Mapping[str, str] = {
    f"SIGNOFF_{key.replace('.', '_').upper()}": key for key in BUILT_IN if key not in FILES_ONLY
}
"""Environment variables and their settings, except those of notations."""

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


@dataclass(frozen=True)
class AgentSettings:
    """The settings of one agent."""

    kind: str
    concurrency: int | None = None
    rate: Rate | None = None
    retries: int | None = None
    """How often a transient error is retried; None means the engine's default."""
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
    layers: list[Layer] = [{key: Value(v, BUILT_IN_ORIGIN) for key, v in BUILT_IN.items()}]
    folders: dict[str, Path] = {}
    for path in settings_files(home, environment):
        layers.append(_read_file(path, problems))
        of_project = home is not None and path == home.config
        names = _by_name(_agent_values(layers[-1]))
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


def _read_file(path: Path, problems: list[Problem]) -> Layer:
    # The null device is the usual way to turn a settings file off; devices are not read otherwise.
    if path == Path(os.devnull) or not path.exists():
        return {}
    text = read_text(path, problems, name=str(path))
    if text is None or _is_empty(text):
        return {}
    from signoff.documents.yaml_text import read_yaml

    document = read_yaml(text, str(path), problems)
    if document is None:
        return {}
    from signoff.app.plain_config import read_plain

    layer = read_plain(document)
    if layer is not None:
        return layer
    from signoff.app.config_schema import read_config

    return read_config(document, problems)


def _is_empty(text: str) -> bool:
    """Tells whether a file sets nothing, as `init` writes it, so that YAML is not imported."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#")] in ([], ["version: 1"])


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, Value]]:
    for variable, key in variables(environment).items():
        text = environment.get(variable)
        if text:
            value: Any = list(filter(None, text.split(os.pathsep))) if key == "workflows" else text
            yield key, Value(value, f"environment {variable}")


def _from_command_line(options: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    for key, value in options.items():
        section, _, name = key.partition(".")
        option = f"--{section.rstrip('s')} {name}" if name else f"--{section}"
        yield key, Value(value, f"{COMMAND_LINE} {option}")


def _check(settings: Iterable[tuple[str, Value]], problems: list[Problem]) -> Layer:
    raw: dict[str, Any] = {}
    origins: dict[tuple[str | int, ...], str] = {}
    for key, setting in settings:
        section, _, name = key.partition(".")
        if name:
            raw.setdefault(section, {})[name] = setting.value
        else:
            raw[key] = setting.value
        origins[tuple(key.split("."))] = setting.origin
    if not raw:
        return {}
    from signoff.app.config_schema import check

    def origin_of(path: tuple[str | int, ...]) -> str:
        return origins.get(path) or next((o for p, o in origins.items() if p[:1] == path[:1]), "")

    return check(raw, origin_of, problems, strict=False)


def _agent_values(layer: Layer) -> dict[str, Any]:
    """Returns the settings of agents in a layer, by name and option."""
    values = {key.partition(".")[::2]: each.value for key, each in layer.items()}
    return {rest: value for (section, rest), value in values.items() if section == "agents"}


def _merge(layers: Iterable[Layer], folders: Mapping[str, Path]) -> Settings:
    """Returns the settings of all layers, lowest precedence first.

    `folders` are where the paths of agents start, by agent.
    """
    values: dict[str, Value] = {}
    for layer in layers:
        values.update(layer)
    plain: dict[str, Any] = {}
    sections: dict[str, dict[str, Any]] = {"agents": {}, "roles": {}, "observe": {}}
    for key, setting in values.items():
        section, dot, name = key.partition(".")
        if section in ("agents", "observe"):
            sections[section][name] = setting.value
        elif dot:
            _put(sections, setting.path or (section, name), setting.value)
        else:
            plain[key] = setting.value
    presence = sections.pop("approvals")["presence"]
    limits = {name: value for name, value in sections.pop("limits").items() if value is not None}
    return Settings(
        limits=Limits.from_json(limits),
        agents={
            name: _agent(name, options, folders.get(name))
            for name, options in _by_name(sections.pop("agents")).items()
        },
        observe={
            name: ObserverSettings(options.pop("kind", name), options)
            for name, options in _by_name(sections.pop("observe")).items()
        },
        roles=sections.pop("roles"),
        presence_required=presence == "required",
        sections=sections,
        values=values,
        **plain,
    )


def _put(sections: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Stores a setting under the keys that lead to it."""
    *outer, last = path
    inner = sections
    for key in outer:
        inner = inner.setdefault(key, {})
    inner[last] = value


def _by_name(section: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Returns the options of agents or observers, by name."""
    by_name: dict[str, dict[str, Any]] = {}
    for key, value in section.items():
        # The option is the last part, because an agent's name may contain dots (`gpt-4.1`).
        name, _, option = key.rpartition(".")
        by_name.setdefault(name, {})[option] = value
    return by_name


def _agent(name: str, options: dict[str, Any], folder: Path | None) -> AgentSettings:
    names = {each.name for each in fields(AgentSettings)} - {"options", "folder"}
    common = {each: options.pop(each) for each in names & options.keys()}
    if common.get("rate"):
        common["rate"] = parse_rate(common["rate"])
    common["kind"] = common.get("kind") or name
    return AgentSettings(**common, options=options, folder=folder)
