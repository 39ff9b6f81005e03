"""Where a run's files are, which names are reserved, and how `ctx.write` writes a file."""

from __future__ import annotations

import itertools
import os
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from signoff.core.errors import UnreadableFile, UnsafePath
from signoff.documents import regular_files
from signoff.documents.control_characters import json_text
from signoff.runtime.paths import safe_path

# Writes files atomically and readable only by their owner.
#
# A file is written in a scratch folder and then renamed, so a reader sees either the old
# content or the new. Only a log grows in place, while its run is driven; when the run rests, it is
# compared with the journal.


SCRATCH = ".tmp"
"""The folder for unfinished files; one per project, so leftovers are easy to find."""

LEFTOVER_SECONDS = 3600
"""Age at which a scratch file counts as left over by a dead process: a write takes milliseconds."""

LARGEST_READ = 16 * 1024 * 1024
"""The most bytes read from a file that a user or an agent created."""

_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)


class Disk:
    """Writes into one directory tree; every failure is a `WriteFailed`."""

    def __init__(self, root: Path) -> None:
        self._scratch = root / SCRATCH
        self._swept = False
        # Not the process id: two containers that share a directory may have the same one.
        self._prefix = secrets.token_hex(6)
        self._count = itertools.count()

    def put(self, path: Path, data: bytes, *, durable: bool = True) -> None:
        """Writes a file atomically; `durable` waits until it would survive a power cut."""
        with regular_files.translate_write_errors(path):
            self._move_into_place(self._write_scratch_file(data, durable), path)

    def append(self, path: Path, data: bytes) -> None:
        """Adds lines to a log that exists.

        Not synced, and not atomic: a reader may see half of the last line.
        """
        with regular_files.translate_write_errors(path):
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | _NOFOLLOW | _BINARY)
            with os.fdopen(handle, "ab", buffering=0):
                _write_all(handle, data)

    def remove(self, path: Path) -> None:
        """Removes a file, if it is there."""
        with regular_files.translate_write_errors(path):
            path.unlink(missing_ok=True)

    def move(self, old: Path, new: Path) -> None:
        """Renames a file or a folder."""
        with regular_files.translate_write_errors(new):
            old.replace(new)

    def point_link(self, link: Path, target: str) -> None:
        """Points `link` to a sibling; without symlinks, `link` is a file with its name."""
        with regular_files.translate_write_errors(link):
            scratch = self._new_scratch_path()
            try:
                self._link(scratch, target)
            except (OSError, NotImplementedError):
                scratch = self._write_scratch_file(f"{target}\n".encode(), durable=False)
            self._move_into_place(scratch, link)

    def _link(self, path: Path, target: str) -> None:
        path.symlink_to(target)

    def _write_scratch_file(self, data: bytes, durable: bool) -> Path:
        path = self._new_scratch_path()
        handle = regular_files.create_private(path)
        try:
            _write_all(handle, data)
            if durable:
                os.fsync(handle)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        finally:
            os.close(handle)
        return path

    def _move_into_place(self, scratch: Path, path: Path) -> None:
        try:
            if not path.parent.is_dir():
                regular_files.make_private_folders(path.parent)
            scratch.replace(path)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise

    def _new_scratch_path(self) -> Path:
        if not self._scratch.is_dir():
            regular_files.make_private_folders(self._scratch)
        if not self._swept:
            _remove_leftovers(self._scratch)
            self._swept = True
        return self._scratch / f"{self._prefix}-{next(self._count)}"


def read_regular_file(path: Path, *, largest: int | None = LARGEST_READ) -> bytes | None:
    """Returns a regular file's content; None for anything else, such as a link or a pipe."""
    try:
        data = regular_files.read_regular(path, largest)
    except OSError:
        return None
    return data if largest is None or len(data) <= largest else None


def _write_all(handle: int, data: bytes) -> None:
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(handle, remaining) :]


def _remove_leftovers(scratch: Path) -> None:
    """Removes scratch files of processes that died."""
    cutoff = time.time() - LEFTOVER_SECONDS
    for path in scratch.iterdir():
        with suppress(FileNotFoundError):
            if path.lstat().st_mtime < cutoff:
                path.unlink()


LATEST = "latest"
"""Next to the runs: points to the newest one."""

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
            data = regular_files.read_regular(
                file_path(run_folder(self._root, run), path), LARGEST_READ
            )
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


def file_path(folder: Path, path: str) -> Path:
    """Returns the path of a workflow's file; raises `UnsafePath`, also for reserved names."""
    return safe_path(folder, path, reserved=RESERVED_NAMES)


def json_bytes(document: Mapping[str, Any]) -> bytes:
    """Returns a document as indented JSON in UTF-8."""
    text = json_text(document, indent=2)
    # Half of a surrogate pair becomes its JSON escape, so the file is valid and complete.
    return f"{text}\n".encode("utf-8", "backslashreplace")


def encode_text(text: str) -> bytes:
    """Returns the bytes of a workflow's file; their SHA-256 is the text's digest in the journal."""
    return text.encode("utf-8", "surrogatepass")
