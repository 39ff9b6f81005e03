"""The settings of a project, and where each value comes from.

Layers from lowest to highest precedence: built-in values, the user's file, the project's
file, the environment, the command line. A layer overrides single values, never a whole
section. All mistakes in all layers are reported at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from signoff.app.home import Home
from signoff.app.setting_layers import Layer, Rate, Value
from signoff.core.spend import Limits
from signoff.documents.files import read_text
from signoff.errors import ConfigError, Problem

BUILT_IN: Mapping[str, Any] = {
    "limits.usd": None,
    "limits.tokens": None,
    "limits.calls": None,
    "limits.seconds": None,
    "workflows": [],
    "pass_env": [],
    "database": "signoff.db",
    "log_level": "warning",
}
"""The default values."""

ENVIRONMENT: Mapping[str, tuple[str, ...]] = {
    "SIGNOFF_DATABASE": ("database",),
    "SIGNOFF_LOG_LEVEL": ("log_level",),
    "SIGNOFF_WORKFLOWS": ("workflows",),
    "SIGNOFF_LIMITS_USD": ("limits", "usd"),
    "SIGNOFF_LIMITS_TOKENS": ("limits", "tokens"),
    "SIGNOFF_LIMITS_CALLS": ("limits", "calls"),
    "SIGNOFF_LIMITS_SECONDS": ("limits", "seconds"),
}
"""Environment variables and their settings, except those of notations."""

OTHER_VARIABLES = frozenset({"SIGNOFF_HOME", "SIGNOFF_CONFIG", "SIGNOFF_MODELS"})
"""Environment variables that name folders and are not settings."""

OWN_SECTIONS = frozenset({"limits", "agents", "roles"})

COMMAND_LINE = "command line"


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
    """Dollars per million tokens, `in` and `out`; None means the price list."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options that are specific to the kind of agent."""


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
    """A file path relative to the project home."""
    log_level: str = "warning"
    sections: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The sections of notations, by name."""
    values: Layer = field(default_factory=dict)


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
    layers: list[Layer] = [{key: Value(v, "built-in") for key, v in BUILT_IN.items()}]
    for path, must_exist in settings_files(home, environment):
        layers.append(_read_file(path, must_exist, problems))
    layers.append(_from_environment(environment, problems))
    layers.append(_from_command_line(command_line or {}, problems))
    if problems:
        raise ConfigError("\n".join(str(problem) for problem in problems))
    return merge(layers)


def variables(environment: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Returns the environment variables that are settings.

    Those of notations are loaded only if the environment has a variable that needs them.
    """
    known = dict(ENVIRONMENT)
    if any(_is_unknown(each, known) for each in environment):
        from signoff import plugins

        for notation in plugins.notations():
            if (section := notation.settings) is not None:
                known.update({n: (section.name, key) for n, key in section.environment.items()})
    return known


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Returns variables that look like settings but are unknown, often because of a typo."""
    known = variables(environment)
    return sorted(each for each in environment if _is_unknown(each, known))


def given_limits(settings: Settings) -> Limits | None:
    """Returns the limits of the command line, which override even those of the workflow."""
    given = {
        key.removeprefix("limits."): value.value
        for key, value in settings.values.items()
        if key.startswith("limits.") and value.origin.startswith(COMMAND_LINE)
    }
    return Limits.from_json(given) if given else None


def merge(layers: Iterable[Layer]) -> Settings:
    """Returns the settings of all layers, lowest precedence first."""
    values: dict[str, Value] = {}
    for layer in layers:
        values.update(layer)
    plain = {key: value.value for key, value in values.items()}
    return Settings(
        limits=Limits.from_json(
            {k: v for k, v in _section(plain, "limits").items() if v is not None}
        ),
        agents=_agents(_section(plain, "agents")),
        roles=_section(plain, "roles"),
        workflows=tuple(plain.get("workflows") or ()),
        pass_env=tuple(plain.get("pass_env") or ()),
        database=plain.get("database") or BUILT_IN["database"],
        log_level=plain.get("log_level") or BUILT_IN["log_level"],
        sections={name: _section(plain, name) for name in _section_names(plain)},
        values=values,
    )


def settings_files(home: Home | None, environment: Mapping[str, str]) -> list[tuple[Path, bool]]:
    """Returns the settings files, lowest precedence first, and whether each one must exist."""
    files = [(user_file(environment), "SIGNOFF_CONFIG" in environment)]
    if home is not None:
        files.append((home.config, False))
    return files


def _read_file(path: Path, must_exist: bool, problems: list[Problem]) -> Layer:
    if path == Path(os.devnull):
        return {}  # The usual way to turn a settings file off; devices are not read otherwise.
    if not path.exists():
        if must_exist:
            problems.append(Problem(str(path), "does not exist", "SIGNOFF_CONFIG names it"))
        return {}
    text = read_text(path, problems, name=str(path))
    if text is None or _is_empty(text):
        return {}
    from signoff.app.config_schema import read_config

    return read_config(text, str(path), problems)


def _is_empty(text: str) -> bool:
    """Tells whether a file sets nothing, as `init` writes it, so that YAML is not imported."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#")] in ([], ["version: 1"])


def _from_environment(environment: Mapping[str, str], problems: list[Problem]) -> Layer:
    raw: dict[str, Any] = {}
    origins: dict[tuple[str | int, ...], str] = {}
    for variable, path in variables(environment).items():
        text = environment.get(variable)
        if not text:
            continue
        value: Any = [p for p in text.split(os.pathsep) if p] if path == ("workflows",) else text
        _set_path(raw, path, value)
        origins[path] = f"environment {variable}"
    return _checked(raw, origins, problems)


def _from_command_line(given: Mapping[str, Any], problems: list[Problem]) -> Layer:
    raw: dict[str, Any] = {}
    origins: dict[tuple[str | int, ...], str] = {}
    for name, value in given.items():
        path = tuple(name.split("."))
        _set_path(raw, path, value)
        option = f"--{path[0].rstrip('s')} {path[1]}" if len(path) > 1 else f"--{path[0]}"
        origins[path] = f"{COMMAND_LINE} {option}"
    return _checked(raw, origins, problems)


def _checked(
    raw: dict[str, Any], origins: Mapping[tuple[str | int, ...], str], problems: list[Problem]
) -> Layer:
    if not raw:
        return {}
    from signoff.app.config_schema import check

    def origin(path: tuple[str | int, ...]) -> str:
        return origins.get(path) or next((o for p, o in origins.items() if p[:1] == path[:1]), "")

    return check(raw, origin, problems, strict=False)


def _set_path(raw: dict[str, Any], path: Sequence[str], value: Any) -> None:
    for part in path[:-1]:
        raw = raw.setdefault(part, {})
    raw[path[-1]] = value


def _is_unknown(variable: str, known: Mapping[str, Any]) -> bool:
    prefix = variable.startswith("SIGNOFF_")
    return prefix and variable not in known and variable not in OTHER_VARIABLES


def _section_names(plain: Mapping[str, Any]) -> list[str]:
    dotted = (key.partition(".")[0] for key in plain if "." in key)
    return [name for name in dict.fromkeys(dotted) if name not in OWN_SECTIONS]


def _section(plain: Mapping[str, Any], name: str) -> dict[str, Any]:
    inside = f"{name}."
    return {key.removeprefix(inside): v for key, v in plain.items() if key.startswith(inside)}


def _agents(section: Mapping[str, Any]) -> dict[str, AgentSettings]:
    by_name: dict[str, dict[str, Any]] = {}
    for key, value in section.items():
        # The option is the last part, because an agent's name may contain dots (`gpt-4.1`).
        name, _, option = key.rpartition(".")
        by_name.setdefault(name, {})[option] = value
    return {name: _agent(name, options) for name, options in by_name.items()}


def _agent(name: str, options: dict[str, Any]) -> AgentSettings:
    from signoff.app.config_schema import parse_rate

    rate = options.pop("rate", None)
    return AgentSettings(
        kind=options.pop("kind", None) or name,
        concurrency=options.pop("concurrency", None),
        rate=parse_rate(rate) if rate else None,
        retries=options.pop("retries", None),
        fallback=options.pop("fallback", None),
        price=options.pop("price", None),
        options=options,
    )
