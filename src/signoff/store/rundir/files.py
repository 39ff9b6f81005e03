"""The files a workflow writes itself, with `ctx.write`."""

from __future__ import annotations

from pathlib import Path

from signoff.runtime.paths import safe_path
from signoff.store.rundir.disk import Disk, read_plain
from signoff.store.rundir.place import ENGINES_OWN, WORK, folder_of


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
