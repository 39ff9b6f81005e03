"""Writes files atomically and readable only by their owner.

A file is written in a scratch folder and then renamed, so a reader sees either the old
content or the new. Only a log grows in place, and only by bytes that every one of its
writers would put there.
"""

from __future__ import annotations

import itertools
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path

from signoff.documents.regular_files import (
    create_private,
    make_private_folders,
    read_regular,
    translate_write_errors,
)

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
        with translate_write_errors(path):
            self._move_into_place(self._write_scratch_file(data, durable), path)

    def extend(self, path: Path, offset: int, data: bytes) -> bool:
        """Writes the end of a log from `offset` on; False if the log is shorter than that.

        Not synced, and not atomic: a reader may see half of the last line.
        """
        with translate_write_errors(path):
            return not data or _extend(path, offset, data)

    def remove(self, path: Path) -> None:
        """Removes a file, if it is there."""
        with translate_write_errors(path):
            path.unlink(missing_ok=True)

    def move(self, old: Path, new: Path) -> None:
        """Renames a file or a folder."""
        with translate_write_errors(new):
            old.replace(new)

    def point_link(self, link: Path, target: str) -> None:
        """Points `link` to a sibling; without symlinks, `link` is a file with its name."""
        with translate_write_errors(link):
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
        handle = create_private(path)
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
                make_private_folders(path.parent)
            scratch.replace(path)
        except BaseException:
            scratch.unlink(missing_ok=True)
            raise

    def _new_scratch_path(self) -> Path:
        if not self._scratch.is_dir():
            make_private_folders(self._scratch)
        if not self._swept:
            _remove_leftovers(self._scratch)
            self._swept = True
        return self._scratch / f"{self._prefix}-{next(self._count)}"


def read_regular_file(path: Path, *, largest: int | None = LARGEST_READ) -> bytes | None:
    """Returns a regular file's content; None for anything else, such as a link or a pipe."""
    try:
        data = read_regular(path, largest)
    except OSError:
        return None
    return data if largest is None or len(data) <= largest else None


def _extend(path: Path, offset: int, data: bytes) -> bool:
    # No process ever shortens a log in place, so the size that was checked here cannot shrink
    # before the write.
    try:
        handle = os.open(path, os.O_RDWR | _NOFOLLOW | _BINARY)
    except FileNotFoundError:
        return False
    with os.fdopen(handle, "rb+", buffering=0) as file:
        if file.seek(0, os.SEEK_END) < offset:
            return False
        file.seek(offset)
        _write_all(handle, data)
    return True


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
