"""Keeps SQLite's write-ahead log from growing under every commit.

A commit that makes the log file longer has to make the file's new size durable too,
which on most file systems costs as much again as the commit. A log that is already as
long as it gets is only written over. So a new one starts with its full length of zeros,
which SQLite reads as an empty log, and is brought back to its start when it is full.
"""

from __future__ import annotations

import errno
import os
import secrets
from contextlib import suppress
from pathlib import Path

LOG_BYTES = 1 << 20
"""Long enough to group many commits per checkpoint, short enough to write in a millisecond."""


def lay_out_log(database: Path) -> None:
    """Makes the log of a database nobody has open full length; anything else is left alone."""
    log = database.with_name(f"{database.name}-wal")
    if log.exists():
        return
    draft = database.with_name(f"{database.name}-wal.{secrets.token_hex(4)}")
    # Only speed is at stake: no room, no hard links or a rival are no reason to fail.
    with suppress(OSError):
        try:
            _write_zeros(draft)
            # Appears at once and whole, or not at all when somebody else was first.
            os.link(draft, log)
        finally:
            draft.unlink(missing_ok=True)


def _write_zeros(path: Path) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        if os.write(handle, bytes(LOG_BYTES)) < LOG_BYTES:
            # On a disk that is nearly full, what is left belongs to the runs.
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(handle)
    finally:
        os.close(handle)
