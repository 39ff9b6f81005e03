"""Reads files from untrusted paths safely, and creates files that only their owner can read.

A path may lead to a pipe, a device or a socket, and reading one of those could block forever
or act on hardware. So a file is opened without blocking, and nothing is read before the open
handle is known to be a regular file. Checking the path first would leave time to replace it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from signoff.core.errors import WriteFailed

FILE_MODE = 0o600
FOLDER_MODE = 0o700

_DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT)
_NOFOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK: int = getattr(os, "O_NONBLOCK", 0)
_NOCTTY: int = getattr(os, "O_NOCTTY", 0)
_BINARY: int = getattr(os, "O_BINARY", 0)

_KINDS: tuple[tuple[Callable[[int], bool], str], ...] = (
    (stat.S_ISLNK, "link"),
    (stat.S_ISFIFO, "pipe"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
)


class NotRegular(OSError):  # noqa: N818  # named like the standard IsADirectoryError's message
    """The path leads to something other than a regular file."""


def read_regular(path: Path, largest: int | None, *, follow: bool = False) -> bytes:
    """Returns the content of a regular file, at most one byte more than `largest`.

    Raises `NotRegular` for a pipe, a device, a socket and, unless `follow`, a link;
    `OSError` for a folder or a file that cannot be read.
    """
    flags = os.O_RDONLY | _NONBLOCK | _NOCTTY | _BINARY | (0 if follow else _NOFOLLOW)
    try:
        # With an opener the file owns its handle, and closes it even if it is a folder's.
        with open(path, "rb", opener=lambda name, _flags: os.open(name, flags)) as file:
            _check_regular(path, os.fstat(file.fileno()).st_mode)
            return file.read(-1 if largest is None else largest + 1)
    except OSError as error:
        # A socket cannot be opened at all, and O_NOFOLLOW reports a link as a loop.
        if error.errno in (errno.ENXIO, errno.ELOOP, errno.EOPNOTSUPP, errno.EISDIR):
            _check_regular(path, path.stat(follow_symlinks=follow).st_mode)
        raise


def make_private_folders(folder: Path) -> None:
    """Creates a folder and its missing parents with access for the owner only."""
    for path in (*reversed(folder.parents), folder):
        if not path.is_dir():
            make_private_folder(path, exist_ok=True)


def make_private_folder(folder: Path, *, exist_ok: bool = False) -> None:
    """Creates one folder with access for the owner only."""
    try:
        folder.mkdir(mode=FOLDER_MODE)
    except FileExistsError:
        if not (exist_ok and folder.is_dir()):
            raise
        return
    # `mkdir` applies the umask, which may have removed the owner's own rights as well.
    folder.chmod(FOLDER_MODE)


def create_private(path: str | os.PathLike[str], flags: int = os.O_WRONLY | os.O_EXCL) -> int:
    """Opens a file and returns its handle; a new file gets access for the owner only."""
    try:
        handle = os.open(path, flags | os.O_CREAT | os.O_EXCL | _BINARY, FILE_MODE)
    except FileExistsError:
        if flags & os.O_EXCL:
            raise
        return os.open(path, flags | _BINARY)
    if hasattr(os, "fchmod"):
        os.fchmod(handle, FILE_MODE)
    return handle


def replace_private(path: Path, parts: Iterable[str]) -> None:
    """Writes a text file as a whole, with access for the owner only; a link is followed.

    If it cannot be completed, the old file stays. A pipe or a device is written directly.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", errors="replace", newline="\n") as device:
            device.writelines(parts)
        return
    scratch = path.with_name(f".{path.name[:100]}.{os.urandom(6).hex()}")
    try:
        handle = create_private(scratch)
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.writelines(parts)
        scratch.replace(path)
    finally:
        scratch.unlink(missing_ok=True)


def _check_regular(path: Path, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "is a folder, not a file", str(path))
    kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "special file")
    raise NotRegular(errno.EINVAL, f"is a {kind}, not a regular file", str(path))


@contextmanager
def translate_write_errors(path: Path) -> Iterator[None]:
    """Turns an operating system error into a `WriteFailed` that says what to do."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _DISK_FULL_ERRORS:
            raise WriteFailed(f"cannot write {path}: the disk is full; free some space") from error
        raise WriteFailed(
            f"cannot write {path}: {reason}; check that its folder is writable"
        ) from error


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Waits until no other process or thread changes a file, and keeps them out meanwhile.

    The lock ends with its process, even if that is killed. It is held on a file next to the
    other one, which may be replaced, and that file stays: removing it would let a process that
    waits for the old one and another that creates a new one both have the lock.
    """
    import fcntl

    # Opened for both, so that a pipe in its place could not make this wait for a reader.
    handle = create_private(path.with_name(f".{path.name}.lock"), os.O_RDWR)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
