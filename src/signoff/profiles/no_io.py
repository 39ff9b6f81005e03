"""Holds profiles to their promise: they never do I/O.

While a profile is called, an attempt to open a file, to change the file system, to start a
program or to open a connection is refused. Imports and templates are excepted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any

_FORBIDDEN = frozenset(
    {
        "os.chmod", "os.link", "os.listdir", "os.mkdir", "os.remove", "os.rename", "os.rmdir",
        "os.scandir", "os.symlink", "os.system", "os.truncate", "os.exec", "os.posix_spawn",
        "shutil.copyfile", "shutil.move", "shutil.rmtree", "socket.bind", "socket.connect",
        "sqlite3.connect", "subprocess.Popen", "tempfile.mkdtemp", "tempfile.mkstemp",
    }
)  # fmt: skip
"""Audit events of the standard library that a profile must not cause; `open` is judged alone."""

_CODE = (".py", ".pyc", ".so", ".pyd")
"""What an import opens."""

_calling: ContextVar[bool] = ContextVar("signoff_profile_call", default=False)


@contextmanager
def without_io() -> Iterator[None]:
    """Refuses I/O of this thread or task."""
    _watch()
    token = _calling.set(True)
    try:
        yield
    finally:
        _calling.reset(token)


@contextmanager
def templates_allowed() -> Iterator[None]:
    """Allows to read templates, which are part of a profile."""
    token = _calling.set(False)
    try:
        yield
    finally:
        _calling.reset(token)


@cache
def _watch() -> None:
    """Installs the hook, once and for good: Python cannot remove one."""
    sys.addaudithook(_audit)


def _audit(event: str, args: tuple[Any, ...]) -> None:
    if event != "open" and event not in _FORBIDDEN:
        return
    if not _calling.get() or (event == "open" and str(args[0]).endswith(_CODE)):
        return
    target = f" {args[0]!r}" if args else ""
    raise PermissionError(f"profiles do no I/O, and this one tried {event}{target}")
