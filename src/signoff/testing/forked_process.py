"""Ends processes that a server has forked, without destroying what the server had imported."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn


def run_and_exit(call: Callable[[], int | None]) -> NoReturn:
    """Calls a function, and ends this process with the exit code it returns.

    Threads are awaited, exit handlers run and garbage is collected, as always. Only modules are
    left alone: destroying them copies all memory that is shared with the server, which takes as
    long as a typical command.
    """
    code = 1
    try:
        code = call() or 0
    except SystemExit as ended:
        code = _code(ended)
    except BaseException:  # noqa: BLE001  # whatever it is, the process ends with it
        traceback.print_exc()
    # Python calls these at the end of every process, and has no public names for them.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    gc.collect()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _code(ended: SystemExit) -> int:
    if ended.code is None or isinstance(ended.code, int):
        return ended.code or 0
    print(ended.code, file=sys.stderr)
    return 1
