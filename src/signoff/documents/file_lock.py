"""Lets one process at a time change a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from signoff.documents.regular_files import create_private


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
