"""Where a run's files are, which names are reserved, and how `ctx.write` writes a file."""

from __future__ import annotations

from pathlib import Path

from signoff.documents.regular_files import read_regular
from signoff.errors import UnreadableFile, UnsafePath
from signoff.runtime.paths import safe_path
from signoff.store.rundir.disk import LARGEST_READ, Disk

LATEST = "latest"
"""Next to the runs: points to the newest one."""

WORK = ".work"
"""Next to the runs: the working copies of agents, which must not reach the files of a run."""

STATE = "state.json"
THREAD = "thread.jsonl"
LOG = "live.log"
RESOLUTION = "resolution.json"
DEFINITION = "definition.json"
HITL = "hitl"

RESERVED_NAMES = frozenset({STATE, THREAD, LOG, RESOLUTION, DEFINITION, HITL})
"""Names that a workflow may not write: a model could forge a run's record or an answer."""

HIDDEN = frozenset({".cache"})
"""Hidden folders in which a notation may show parts of its definition."""


def run_folder(root: Path, run: str) -> Path:
    """Returns a run's folder; raises `UnsafePath` if the name is not a valid folder name."""
    if "/" in run:
        raise UnsafePath(f"run name {run!r} contains '/'; use a name that works as a folder name")
    return safe_path(root, run, reserved={LATEST})


class RunFiles:
    """Reads and writes the files of runs, without waiting for the projection."""

    def __init__(self, root: Path, *, disk: Disk | None = None) -> None:
        self._root = root
        self._disk = disk or Disk(root)

    def write(self, run: str, path: str, text: str) -> None:
        """Writes a file of a run, atomically; raises `UnsafePath`."""
        self._disk.put(file_path(run_folder(self._root, run), path), encode_text(text))

    def read(self, run: str, path: str) -> bytes | None:
        """Returns a file's content; None if there is none.

        Raises `UnsafePath`, or `UnreadableFile` if it is not a regular file or too large.
        """
        try:
            data = read_regular(file_path(run_folder(self._root, run), path), LARGEST_READ)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise UnreadableFile(f"cannot read {path}: {error.strerror}") from error
        if len(data) > LARGEST_READ:
            raise UnreadableFile(f"{path} is larger than {LARGEST_READ // 2**20} MiB")
        return data

    def folder(self, run: str) -> Path:
        """Returns the absolute folder of a run's files; raises `UnsafePath` for a bad name."""
        return run_folder(self._root, run).absolute()

    def working_copies(self, run: str) -> Path:
        """Returns the folder for a run's working copies, outside the run's own folder."""
        return run_folder(self._root / WORK, run)


def file_path(folder: Path, path: str) -> Path:
    """Returns the path of a workflow's file; raises `UnsafePath`, also for reserved names."""
    return safe_path(folder, path, reserved=RESERVED_NAMES)


def encode_text(text: str) -> bytes:
    """Returns the bytes of a workflow's file; their SHA-256 is the text's digest in the journal."""
    return text.encode("utf-8", "surrogatepass")
