"""What a run needs from the worker that drives it, and what a worker can do.

Capabilities are plain names: `agent:claude` for an agent that is ready, `host:desk` for a machine,
`folder:/srv/book` for a project in that folder, and labels that operators choose.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Mapping

from signoff.app.agents import known_agents
from signoff.app.project import Project
from signoff.app.readiness import find_not_ready
from signoff.app.start import StartPlan
from signoff.notation import Ask

AGENT, FOLDER, HOST = "agent:", "folder:", "host:"

RECHECK_SECONDS = 60.0
"""How long a worker relies on its last check of an agent."""


def needs_of(
    project: Project,
    plan: StartPlan,
    switch: Mapping[str, str] | None = None,
    labels: Iterable[str] = (),
) -> tuple[str, ...]:
    """Returns what a worker must be able to do to drive a planned run."""
    agents = {f"{AGENT}{ask.agent}" for ask in plan.asked_agents(switch)}
    places = set(places_of(project))
    if places and any(step.edits for step in plan.target.workflow.steps.values()):
        # Its steps change files in place, and these are on this machine only.
        places.add(f"{HOST}{socket.gethostname()}")
    return tuple(sorted({*labels, *agents, *places}))


def places_of(project: Project) -> tuple[str, ...]:
    """Returns where a worker must be to find the workflows of a project."""
    # All workers of a store that is a file are on this machine, in this project.
    is_local = project.store.local_file() is not None
    return () if is_local else (f"{FOLDER}{project.home.root}",)


class WorkerCapabilities:
    """What one worker can do. Agents are checked when a run first needs them."""

    def __init__(self, project: Project, labels: Iterable[str] = ()) -> None:
        self._project = project
        places = {f"{HOST}{socket.gethostname()}", f"{FOLDER}{project.home.root}"}
        self._fixed = frozenset({*labels, *places})
        self._ready: set[str] = set()
        self._checked: dict[str, float] = {}

    @property
    def names(self) -> frozenset[str]:
        """All that is known so far."""
        return self._fixed | {f"{AGENT}{name}" for name in self._ready}

    def check(self, needs: Iterable[str]) -> bool:
        """Checks the agents among these needs, at no cost; tells whether the names changed."""
        before, now = self.names, time.monotonic()
        agents = [
            need.removeprefix(AGENT)
            for need in sorted(set(needs))
            if need.startswith(AGENT)
            and now - self._checked.get(need.removeprefix(AGENT), float("-inf")) > RECHECK_SECONDS
        ]
        if not agents:
            return False
        settings = self._project.settings.agents
        root = self._project.code_root or self._project.home.root
        own = [name for name in agents if name in self._project.agents]
        asked = [name for name in agents if name in known_agents(settings) and name not in own]
        not_ready = find_not_ready(settings, map(Ask, asked), root)
        self._ready.difference_update(agents)
        self._ready.update(name for name in (*own, *asked) if name not in not_ready)
        self._checked.update(dict.fromkeys(agents, now))
        return self.names != before
