"""What can be said of configured agents without asking any of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from signoff import plugins
from signoff.app.loading import make_importable
from signoff.app.settings import Settings
from signoff.errors import Problem


def unknown_kinds(settings: Settings) -> list[Problem]:
    """Returns the agents of a kind that is not there, with the line that names it."""
    own = {
        name: agent.kind
        for name, agent in settings.agents.items()
        if ":" not in agent.kind and agent.kind not in plugins.AGENT_KINDS
    }
    if not own:
        # Other packages are only looked through for a kind that is not built in.
        return []
    kinds = plugins.agent_kinds()
    listed = f"kinds: {', '.join(sorted(kinds))}; or package.module:factory"
    return [
        Problem(_place(settings, name), f"agents.{name}: there is no kind {kind!r}", listed)
        for name, kind in own.items()
        if kind not in kinds
    ]


def unloadable_checks(settings: Settings, root: Path) -> Iterator[str]:
    """Yields which checks name a function that cannot be imported, and why."""
    for name, agent in settings.agents.items():
        function = agent.options.get("function")
        if agent.kind != "check" or not isinstance(function, str):
            continue
        make_importable([root])
        try:
            plugins.load(function)
        except Exception as error:  # noqa: BLE001  # the user's module may raise anything
            yield f"{_place(settings, name, 'function')}: agents.{name}: {error}"


def _place(settings: Settings, agent: str, key: str = "kind") -> str:
    value = settings.values.get(f"agents.{agent}.{key}")
    return value.origin if value is not None else f"agents.{agent}"
