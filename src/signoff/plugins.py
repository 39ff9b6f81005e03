"""Every place where signoff can be extended, in one file.

Built-in parts and those of other packages come through the same door: a table of
names to `module:attribute`, loaded when first used. Another package adds to a table
by an entry point of the same group in its own pyproject.toml.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Protocol

from signoff.core.workflow import Workflow
from signoff.errors import ConfigError
from signoff.runtime.ports import Agent

Notation = Callable[..., Workflow]
"""Reads a file and returns the workflow it describes.

Called as `notation(path, root=, home=, options=, agents=)`: the project's folder, its
`.signoff/` if it has one, what the command line said, and the agents of the settings by
name. What it used of the options, it keeps under `given` in the workflow's source.
"""


class Story(Protocol):
    """What a notation tells of a run; called for with the run's state."""

    @property
    def summary(self) -> str:
        """A few lines for the end of a run, or nothing."""
        ...

    @property
    def details(self) -> str:
        """More lines, for whoever asks about the run."""
        ...

    @property
    def facts(self) -> Mapping[str, Any]:
        """The same for programs: further fields of `show --json`."""
        ...


class Foresight(Protocol):
    """What a notation tells of a run that is not started; called for with its workflow."""

    @property
    def columns(self) -> Sequence[str]:
        """Headings of a table."""
        ...

    @property
    def rows(self) -> Sequence[Sequence[object]]:
        """Its rows."""
        ...

    @property
    def notes(self) -> Sequence[str]:
        """What the table does not say."""
        ...

    @property
    def facts(self) -> Mapping[str, Any]:
        """The same for programs: further fields of `run --dry-run --json`."""
        ...


AgentKind = Callable[..., Agent]
"""Makes an agent from the options under its name in the settings."""

NOTATIONS: Mapping[str, str] = {
    ".yaml": "signoff.app.yaml_notations:read_notation",
    ".yml": "signoff.app.yaml_notations:read_notation",
}
"""Files that can be run, by suffix (`.yaml`)."""

AGENT_KINDS: Mapping[str, str] = {
    "anthropic": "signoff.agents.anthropic:AnthropicModel",
    "auto": "signoff.agents.auto:AutoAgent",
    "cassette": "signoff.testing.cassette:CassetteAgent",
    "check": "signoff.agents.check:CheckAgent",
    "claude": "signoff.agents.claude:ClaudeAgent",
    "codex": "signoff.agents.codex:CodexAgent",
    "command": "signoff.agents.command:CommandAgent",
    "gemini": "signoff.agents.gemini:GeminiAgent",
    "local": "signoff.agents.local:LocalModel",
    "manual": "signoff.agents.manual:ManualAgent",
    "ollama": "signoff.agents.ollama:OllamaModel",
    "openai": "signoff.agents.openai:OpenAIModel",
    "scripted": "signoff.testing.script:FileScript",
}
"""Agents that can be named under `agents:` in the settings, by kind."""

LAYOUTS: Mapping[str, str] = {"flows": "signoff.flows.layout:FlowLayout"}
"""How run directories are laid out, by notation; others are laid out plainly."""

STORIES: Mapping[str, str] = {"flows": "signoff.flows.report:tell"}
"""Who tells of a run what only its notation knows, by notation."""

PLANS: Mapping[str, str] = {
    "contracts": "signoff.contracts.plan:plan",
    "flows": "signoff.flows.plan:plan",
}
"""Who tells what a run would do that only its notation knows, by notation."""

_GROUPS = {
    "notations": NOTATIONS,
    "agents": AGENT_KINDS,
    "layouts": LAYOUTS,
    "stories": STORIES,
    "plans": PLANS,
}


def notations() -> Mapping[str, str]:
    """Returns every notation there is, by suffix."""
    return _table("notations")


def agent_kinds() -> Mapping[str, str]:
    """Returns every kind of agent there is, by name."""
    return _table("agents")


def of_notation(group: str, notation: str) -> Any | None:
    """Returns what a notation brings of its own (`layouts`, ...); None when it brings nothing."""
    # Built-in ones are found without a search through every installed package.
    place = _GROUPS[group].get(notation)
    if place is None and notation not in ("", "python"):
        place = _table(group).get(notation)
    return load(place) if place is not None else None


def load(place: str) -> Any:
    """Returns what stands at `package.module:attribute`."""
    module_name, _, attribute = place.partition(":")
    try:
        return getattr(import_module(module_name), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"cannot load {place!r}: {error}") from error


def _table(group: str) -> Mapping[str, str]:
    # Looking through every installed package takes a while, so only who asks pays for it.
    from importlib.metadata import entry_points

    others = {point.name: point.value for point in entry_points(group=f"signoff.{group}")}
    return {**others, **_GROUPS[group]}
