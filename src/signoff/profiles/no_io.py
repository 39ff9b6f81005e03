"""Holds profiles to their promise: they never do I/O.

While a profile is called, an attempt to open a file, to change the file system, to start a
program or a thread, or to open a connection is refused. Imports, templates and logging are
excepted. This shows authors their mistakes; it is no sandbox for hostile code.
"""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

_FORBIDDEN = frozenset(
    {
        "open", "builtins.input", "sqlite3.connect", "subprocess.Popen",
        "_thread.start_new_thread", "_thread.start_joinable_thread",
        "os.chmod", "os.chown", "os.exec", "os.fork", "os.forkpty", "os.link", "os.listdir",
        "os.mkdir", "os.posix_spawn", "os.remove", "os.rename", "os.rmdir", "os.scandir",
        "os.spawn", "os.startfile", "os.symlink", "os.system", "os.truncate", "os.utime",
        "shutil.copyfile", "shutil.move", "shutil.rmtree", "tempfile.mkdtemp", "tempfile.mkstemp",
        "socket.bind", "socket.connect", "socket.getaddrinfo", "socket.gethostbyname",
        "socket.sendmsg", "socket.sendto",
    }
)  # fmt: skip
"""Audit events of Python that a profile must not cause."""

_IMPORTS = ("<frozen importlib.", str(Path(importlib.__file__).parent))
"""Where the code of imports is, and that of the metadata of packages."""

_calling: ContextVar[bool] = ContextVar("signoff_profile_call", default=False)


def call_without_io(function: Callable[..., T], *args: Any) -> T:
    """Calls a function and refuses its I/O; other threads and tasks are not affected."""
    _watch()
    token = _calling.set(True)
    try:
        return function(*args)
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


def _audit(
    event: str,
    args: tuple[Any, ...],
    # Bound here because Python clears a module's globals at exit, while hooks are still called.
    forbidden: frozenset[str] = _FORBIDDEN,
    calling: ContextVar[bool] = _calling,
) -> None:
    if event not in forbidden or not calling.get() or _excepted(sys._getframe(1)):
        return
    target = f" {args[0]!r}" if args and isinstance(args[0], str | bytes) else ""
    raise PermissionError(f"profiles do no I/O, and this one tried {event}{target}")


def _excepted(frame: FrameType | None) -> bool:
    """Tells whether the profile's call is importing or logging at this point."""
    while frame is not None and frame.f_code is not call_without_io.__code__:
        # To refuse one would harm others: Python remembers a folder that it could not list as
        # empty, and finds no module and no installed package in it from then on.
        if (
            frame.f_code is logging.Logger.callHandlers.__code__
            or frame.f_code.co_filename.startswith(_IMPORTS)
        ):
            return True
        frame = frame.f_back
    return False
