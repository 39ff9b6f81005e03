"""Writing files: whole or not at all, and for their owner's eyes only.

A file is written beside its place and renamed into it, so a reader sees the old text
or the new one. Only a log grows in place, and only by bytes that every writer of it
would put there.
"""

from __future__ import annotations

import errno
import itertools
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from signoff.documents.regular_files import (
    create_private,
    make_private_folders,
    read_regular,
)
from signoff.errors import WriteFailed

SCRATCH = ".tmp"
"""Where files are before they are whole; one folder per project, so it is easily swept."""

LEFTOVER_SECONDS = 3600
"""Age from which a file in there belongs to nobody: a write takes milliseconds."""

LARGEST_READ = 16 * 1024 * 1024
"""Bytes read of a file somebody else has made."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)


class Disk:
    """Writes into one directory tree."""

    def __init__(self, root: Path) -> None:
        self._scratch = root / SCRATCH
        self._swept = False
        # Not the process number: two containers may share a directory and have the same one.
        self._mine = secrets.token_hex(6)
        self._count = itertools.count()

    def put(self, path: Path, data: bytes, *, lasting: bool = True) -> None:
        """Writes a file whole; `lasting` waits until it would survive a power cut."""
        with explained(path):
            self._place(self._fresh(data, lasting), path)

    def extend(self, path: Path, offset: int, data: bytes, *, lasting: bool = True) -> bool:
        """Writes the end of a log, from `offset` on; False when the log has lost its beginning."""
        if offset and not data:
            return True
        if offset == 0:
            self.put(path, data, lasting=lasting)
            return True
        with explained(path):
            return _extend(path, offset, data, lasting=lasting)

    def remove(self, path: Path) -> None:
        """Removes a file, if it is there."""
        with explained(path):
            path.unlink(missing_ok=True)

    def move(self, old: Path, new: Path) -> None:
        """Renames a file or a folder."""
        with explained(new):
            old.replace(new)

    def point(self, link: Path, target: str) -> None:
        """Makes `link` lead to its neighbour; where links cannot be, it is a file with its name."""
        with explained(link):
            self._place(self._fresh_link(target), link)

    def _fresh_link(self, target: str) -> Path:
        fresh = self._scratch_name()
        try:
            self._link(fresh, target)
        except (OSError, NotImplementedError):
            return self._fresh(f"{target}\n".encode(), lasting=False)
        return fresh

    def _link(self, path: Path, target: str) -> None:
        path.symlink_to(target)

    def _fresh(self, data: bytes, lasting: bool) -> Path:
        path = self._scratch_name()
        handle = create_private(path)
        try:
            _write_all(handle, data)
            if lasting:
                os.fsync(handle)
        except BaseException:
            os.close(handle)
            path.unlink(missing_ok=True)
            raise
        os.close(handle)
        return path

    def _place(self, fresh: Path, path: Path) -> None:
        try:
            try:
                fresh.replace(path)
            except FileNotFoundError:
                make_private_folders(path.parent)
                fresh.replace(path)
        except BaseException:
            fresh.unlink(missing_ok=True)
            raise

    def _scratch_name(self) -> Path:
        if not self._scratch.is_dir():
            make_private_folders(self._scratch)
        if not self._swept:
            _sweep(self._scratch)
            self._swept = True
        return self._scratch / f"{self._mine}-{next(self._count)}"


def read_plain(path: Path, *, largest: int | None = LARGEST_READ) -> bytes | None:
    """Returns what a regular file holds; None for anything else, a link or a pipe included."""
    try:
        data = read_regular(path, largest)
    except OSError:
        return None
    return data if largest is None or len(data) <= largest else None


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turns what the system says into what a person can act on."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _FULL:
            raise WriteFailed(f"cannot write {path}: the disk is full; free some space") from error
        raise WriteFailed(
            f"cannot write {path}: {reason}; check that its folder is writable"
        ) from error


def _extend(path: Path, offset: int, data: bytes, *, lasting: bool) -> bool:
    """Nobody ever shortens a log in place, so what was checked here stays true while writing."""
    try:
        handle = os.open(path, os.O_RDWR | _NOFOLLOW | _BINARY)
    except FileNotFoundError:
        return False
    try:
        if os.fstat(handle).st_size < offset:
            return False
        os.lseek(handle, offset, os.SEEK_SET)
        _write_all(handle, data)
        if lasting:
            os.fsync(handle)
    finally:
        os.close(handle)
    return True


def _write_all(handle: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _sweep(scratch: Path) -> None:
    """Removes what processes that died left behind."""
    oldest = time.time() - LEFTOVER_SECONDS
    for path in scratch.iterdir():
        with suppress(FileNotFoundError):
            if path.lstat().st_mtime < oldest:
                path.unlink()
