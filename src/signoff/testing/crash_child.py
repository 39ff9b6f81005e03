"""The program that the crash harness starts: imports stories, and forks a process per request.

Starting Python and importing the engine takes far longer than a story does. This server does
it once and never runs a story itself, so every process that it forks is as good as new.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, NoReturn

from signoff.runtime.store_port import Store
from signoff.store.sqlite import SqliteStore
from signoff.testing.doubles import CrashingStore, EffectLog, When

DATABASE = "signoff.db"
ADDRESS = "database.txt"
"""Names another store than the file of that name, if it exists."""
ERRORS = "errors.txt"
"""What a story's processes write to their standard error."""
NEVER = 0
"""No write: the process is not killed."""


def main() -> None:
    """Forks a process for each line of standard input, and prints the exit code of each."""
    modules: dict[str, Any] = {}
    for line in sys.stdin:
        source, name, *how = json.loads(line)
        if source not in modules:
            modules[source] = _import_file(Path(source))
            # Otherwise the garbage collector of each process searches, and thereby copies,
            # everything that was imported, which takes longer than most stories do.
            gc.freeze()
        child = os.fork()
        if not child:
            run_and_exit(partial(_run, getattr(modules[source], name), *how))
        # One at a time: the next process continues with what this one has left on the disk.
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _run(
    story: Any, environment: dict[str, str], directory: str, at: int, when: When, timeout: float
) -> None:
    """Runs the story on a store that kills this process at a given write."""
    os.environ.clear()
    os.environ.update(environment)
    # The default action of this signal ends the process even if it hangs in a system call.
    signal.setitimer(signal.ITIMER_REAL, timeout)
    # The server's own input and output are the protocol; the story must not touch them.
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    errors = os.open(Path(directory) / ERRORS, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(errors, 1)
    os.dup2(errors, 2)
    store = CrashingStore(open_story_store(Path(directory)), at=at, when=when)
    try:
        asyncio.run(story(store, EffectLog(directory)))
    finally:
        store.close()


def open_story_store(directory: Path) -> Store:
    """Opens the store of a story."""
    address = directory / ADDRESS
    if not address.exists():
        return SqliteStore(directory / DATABASE)
    # Imported here because few stories need it.
    from signoff.app.settings.project import open_database

    return open_database(address.read_text("utf-8"), directory)


def _import_file(path: Path) -> Any:
    spec = spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = module_from_spec(spec)
    # Registered because dataclasses and handlers look up their module by its name.
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


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


if __name__ == "__main__":
    main()
