"""Checks the settings of agents and roles without calling any agent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from signoff import plugins
from signoff.app.agents import known_agents
from signoff.app.loading import make_importable
from signoff.app.settings import AgentSettings, Settings
from signoff.errors import Problem
from signoff.runtime.ports import capabilities_of


def unknown_kinds(settings: Settings) -> list[Problem]:
    """Returns a problem for each agent of an unknown kind, with the line of its setting."""
    own = {
        name: agent.kind
        for name, agent in settings.agents.items()
        if ":" not in agent.kind and agent.kind not in plugins.AGENT_KINDS
    }
    if not own:
        # Installed packages are searched only if a kind is not built in, because that is slow.
        return []
    kinds = plugins.agent_kinds()
    listed = f"kinds: {', '.join(sorted(kinds))}; or package.module:factory"
    return [
        Problem(_place(settings, name), f"agents.{name}: unknown kind {kind!r}", listed)
        for name, kind in own.items()
        if kind not in kinds
    ]


def roles_without_agent(settings: Settings) -> list[Problem]:
    """Returns a problem for each role whose agent does not exist, with the line of its setting."""
    known = known_agents(settings.agents)
    listed = f"name one of: {', '.join(known)}"
    return [
        Problem(_origin(settings, f"roles.{role}"), f"roles.{role}: unknown agent {name!r}", listed)
        for role, name in settings.roles.items()
        if name not in known
    ]


def import_errors(settings: Settings, root: Path) -> Iterator[str]:
    """Yields an error for each agent whose own code cannot be imported."""
    for name, agent in settings.agents.items():
        key, code = _code(agent)
        if ":" not in code:
            continue
        make_importable([root])
        try:
            plugins.load(code)
        except Exception as error:  # noqa: BLE001  # the user's module may raise anything
            yield f"{_place(settings, name, key)}: agents.{name}: {error}"


def _code(agent: AgentSettings) -> tuple[str, str]:
    """Returns the setting that names the user's own code, and its value."""
    function = agent.options.get("function")
    location = plugins.AGENT_KINDS.get(agent.kind)
    if not isinstance(function, str) or location is None:
        return "kind", agent.kind
    # Only a check's `function` is Python code; other kinds may use that option differently.
    is_check = capabilities_of(plugins.load(location)).deterministic
    return ("function", function) if is_check else ("kind", agent.kind)


def _place(settings: Settings, agent: str, key: str = "kind") -> str:
    return _origin(settings, f"agents.{agent}.{key}", f"agents.{agent}")


def _origin(settings: Settings, key: str, otherwise: str = "") -> str:
    value = settings.values.get(key)
    return value.origin if value is not None else otherwise or key
