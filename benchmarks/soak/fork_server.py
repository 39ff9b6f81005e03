"""Forks `signoff worker` processes from one that has signoff imported.

Starting Python and importing signoff takes longer than most workers of a soak live. For each line
on standard input, the path of a log, it prints the pid of a new worker.
"""

from __future__ import annotations

import gc
import os
import select
import sys
from contextlib import suppress
from functools import partial
from importlib import import_module

from signoff.testing.crash_child import run_and_exit

SLOTS = 3
REAP_SECONDS = 0.2


def serve() -> None:
    """Forks a worker for each line, until standard input ends."""
    import_module("tests.preload")
    with suppress(ImportError):
        import_module("temporalio.worker")
    gc.freeze()
    while True:
        if select.select([0], [], [], REAP_SECONDS)[0]:
            # Unbuffered: `select` does not see lines that were read ahead.
            line = b"".join(iter(lambda: os.read(0, 1).removesuffix(b"\n"), b"")).decode()
            if not line:
                return
            child = os.fork()
            if not child:
                run_and_exit(partial(_work, line))
            print(child, flush=True)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _work(log: str) -> int:
    from signoff.surfaces.cli import main

    opened = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, stream in enumerate((nothing, opened, opened)):
        os.dup2(stream, number)
    return main(["worker", "--slots", str(SLOTS)])


if __name__ == "__main__":
    sys.path.append(sys.argv[1])
    serve()
