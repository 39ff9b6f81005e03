"""Where a run's files are, and which names in there are the engine's own."""

from __future__ import annotations

from pathlib import Path

from signoff.errors import UnsafePath
from signoff.runtime.paths import safe_path

LATEST = "latest"
"""Beside the runs: leads to the newest one."""

WORK = ".work"
"""Beside the runs: the working copies of agents, which must not reach the files of a run."""

STATE = "state.json"
THREAD = "thread.jsonl"
LOG = "live.log"
RESOLUTION = "resolution.json"
DEFINITION = "definition.json"
HITL = "hitl"

ENGINES_OWN = frozenset({STATE, THREAD, LOG, RESOLUTION, DEFINITION, HITL})
"""Names no workflow may write, or a model could forge a run's record or an answer."""


HIDDEN = frozenset({".cache"})
"""Hidden folders in which a notation may show parts of its definition."""


def folder_of(root: Path, run: str) -> Path:
    """Returns a run's folder; raises `UnsafePath` when its name cannot be one."""
    if "/" in run:
        raise UnsafePath(f"a run cannot be called {run!r}: its name is one folder's name")
    return safe_path(root, run, reserved={LATEST})
