"""Temporary folders that do not pile up when processes are killed.

A folder's name contains the process that created it. The next process that needs a folder removes
those whose process is gone. Folders of another machine, container or boot are left alone, because
their processes cannot be seen from here.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from signoff.core.digest import text_digest
from signoff.runtime.owner import birth_of, this_host

_NAME = re.compile(r"signoff-([0-9a-f]{8})-(\d+)-([\d.]+)-")


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Creates a folder that only the owner can read, and removes it at the end."""
    folder = make_scratch_folder()
    try:
        yield folder
    finally:
        if folder.is_symlink():
            # A program has replaced it: the link goes, and where it leads is not touched.
            folder.unlink()
        shutil.rmtree(folder, ignore_errors=True)


def make_scratch_folder() -> Path:
    """Creates a folder that only the owner can read; the caller removes it."""
    remove_leftovers()
    pid = os.getpid()
    prefix = f"signoff-{_host()}-{pid}-{birth_of(pid)}-"
    return Path(tempfile.mkdtemp(prefix=prefix)).resolve()


@cache
def remove_leftovers() -> None:
    """Removes the folders of processes that were killed; once per process is enough."""
    for folder in Path(tempfile.gettempdir()).glob("signoff-*"):
        match = _NAME.match(folder.name)
        if match is None or match[1] != _host() or birth_of(int(match[2])) == match[3]:
            continue
        try:
            # Everyone can write to the temporary folder, so another user may have this name.
            ours = not folder.is_symlink() and folder.stat().st_uid == os.getuid()
        except OSError:
            continue  # Another process has removed it.
        if ours:
            shutil.rmtree(folder, ignore_errors=True)


@cache
def _host() -> str:
    return text_digest(this_host())[:8]
