"""Reads files that are no Python, by the notation for their suffix.

A notation is told what the person said on the command line and who can be asked here. It
keeps what it used of that under `given` in the workflow's source, so that a run's
workflow can be built again, the same, wherever and whenever it goes on.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signoff import plugins
from signoff.core.workflow import Workflow
from signoff.errors import InvalidWorkflow, Problem, UsageError

if TYPE_CHECKING:
    from signoff.app.home import Home
    from signoff.app.settings import Settings

DEFAULT_AGENTS = ("claude", "codex", "gemini")
"""Agents that people expect to be asked when they name nobody, the first one first."""

_SPOKEN = {"goal": "--goal", "allow_scripts": "--allow-scripts"}
"""What only a person says, and the option they say it with."""


@dataclass(frozen=True)
class Told:
    """What a notation is told besides the file."""

    options: Mapping[str, Any] = field(default_factory=dict)
    """What the command line said, and what holds where nobody said anything."""
    agents: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The agents and roles of the settings: their kind, and their options."""

    def check_only(self) -> Told:
        """Returns the same for somebody who only looks: what a run needs may be missing."""
        return Told({"goal": None, **self.options, "check_only": True}, self.agents)


def tell(
    settings: Settings, said: Mapping[str, Any] | None = None, also: Iterable[str] = ()
) -> Told:
    """Returns what notations are told in a project; `said` comes from the command line.

    `also` are agents that a program gave beside those of the settings.
    """
    from signoff.app.agents import known_agents

    agents = _plain_agents(settings)
    found = [name for name in DEFAULT_AGENTS if name in agents or _is_here(name)]
    first = DEFAULT_AGENTS[0]
    options = {
        "default_agent": first if first in found else "auto",
        "found": found,
        "known": sorted({*known_agents(settings.agents), *settings.roles, *also}),
    }
    return Told({**options, **(said or {})}, agents)


def told_before(description: str, now: Told) -> Told:
    """Returns what a run's notation was told when the run was started, and nothing newer."""
    source = json.loads(description).get("source")
    before = source.get("given") if isinstance(source, dict) else None
    return Told(before, now.agents) if isinstance(before, dict) else now


def as_said(said: Mapping[str, Any], cwd: Path, home: Home | None) -> dict[str, Any]:
    """Returns what the command line said, its paths as they are found again from anywhere."""
    goal = said.get("goal")
    if not goal:
        return dict(said)
    whole = (cwd / Path(goal).expanduser()).resolve()
    root = (home.root if home is not None else cwd).resolve()
    inside = whole.is_relative_to(root)
    return {**said, "goal": whole.relative_to(root).as_posix() if inside else str(whole)}


def load_notation(path: Path, *, root: Path, home: Path | None, told: Told) -> Workflow:
    """Reads a file by the notation for its suffix."""
    table = plugins.notations()
    place = table.get(path.suffix)
    if place is None:
        known = ", ".join([".py", *sorted(table)])
        what = f"no notation in this version reads {path.suffix or 'such'} files"
        raise InvalidWorkflow(path.name, [Problem(str(path), what, f"it reads: {known}")])
    notation: plugins.Notation = plugins.load(place)
    return notation(path, root=root, home=home, options=told.options, agents=told.agents)


def refuse_spoken(target: str, told: Told) -> None:
    """Raises `UsageError` when options were given that only notations understand."""
    spoken = [option for name, option in _SPOKEN.items() if told.options.get(name)]
    if spoken:
        raise UsageError(
            f"{' and '.join(spoken)}: {target} is a workflow in Python, and takes its "
            "inputs with -i NAME=VALUE; these options are for flow files (.yaml)"
        )


def _is_here(name: str) -> bool:
    """Tells whether a program is on PATH, or came with a package beside us."""
    if shutil.which(name):
        return True
    bundled = getattr(plugins.load(plugins.AGENT_KINDS[name]), "bundled", None)
    return bundled is not None and bundled() is not None


def _plain_agents(settings: Settings) -> dict[str, dict[str, Any]]:
    agents = {name: {"kind": each.kind, **each.options} for name, each in settings.agents.items()}
    roles = {role: agents.get(by, {"kind": by}) for role, by in settings.roles.items()}
    return {**roles, **agents}
