"""Where a run's files are, which names are the engine's own, and what `ctx.write` writes."""

from __future__ import annotations

from pathlib import Path

from signoff.errors import UnsafePath
from signoff.runtime.paths import safe_path
from signoff.store.rundir.disk import Disk, read_plain

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


class RunFiles:
    """Puts a run's files into its directory, at once."""

    def __init__(self, root: Path, *, disk: Disk | None = None) -> None:
        self._root = root
        self._disk = disk or Disk(root)

    def write(self, run: str, path: str, text: str) -> None:
        """Writes a file of a run, atomically; raises `UnsafePath`."""
        self._disk.put(file_of(folder_of(self._root, run), path), as_written(text))

    def read(self, run: str, path: str) -> bytes | None:
        """Returns what a file holds, None for no plain one or a huge one; raises `UnsafePath`."""
        return read_plain(file_of(folder_of(self._root, run), path))

    def working_copies(self, run: str) -> Path:
        """Returns the folder for a run's working copies, outside the run's own folder."""
        return folder_of(self._root / WORK, run)


def file_of(folder: Path, path: str) -> Path:
    """Returns where a workflow's file goes; raises `UnsafePath` for names of the engine too."""
    return safe_path(folder, path, reserved=ENGINES_OWN)


def as_written(text: str) -> bytes:
    """Returns the bytes of such a file; their sha256 is the text's digest in the journal."""
    return text.encode("utf-8", "surrogatepass")
