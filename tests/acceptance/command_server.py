"""Runs signoff commands, each in a process forked from a server that has signoff imported.

A forked process is as separate as one started by a shell: it has its own folder, environment,
input and output, and exit handlers. It only skips starting Python, importing signoff and
destroying its modules, which is most of the time of a short command. The examples and the
documentation are tested with the installed program instead, so that a cold start is tested too.
"""

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import count
from pathlib import Path

ROOT = Path(__file__).parents[2]


class CommandServer:
    """The client's side: starts the server and sends it commands."""

    def __init__(self, environment: Mapping[str, str], scratch: Path) -> None:
        self._scratch = scratch
        self._numbers = count(1)
        # -P leaves this folder out of the server's path: a test may write a module of any name.
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        input_text: str,
        timeout: float,
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end, without a terminal."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        streams = self._scratch / str(next(self._numbers))
        streams.mkdir()
        (streams / "in").write_text(input_text, encoding="utf-8")
        request = [list(arguments), str(folder), dict(environment), str(streams), timeout]
        print(json.dumps(request), file=self._process.stdin, flush=True)
        code = int(self._process.stdout.readline())
        assert code != -signal.SIGALRM, f"signoff {arguments} took more than {timeout} seconds"
        output, errors = ((streams / name).read_text("utf-8") for name in ("out", "err"))
        return subprocess.CompletedProcess(["signoff", *arguments], code, output, errors)

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """Lets the server end."""
        self._process.communicate()


def serve() -> None:
    """Forks a process for each command on standard input, and prints its exit code."""
    sys.path.append(str(ROOT))
    import_module("tests.preload")
    sys.path.remove(str(ROOT))
    # Again, for the import path of the commands.
    import_module("signoff.installed").entry_points("agents")
    from signoff.testing.forked_process import run_and_exit

    # The garbage collectors of the commands then skip everything that was imported.
    gc.freeze()
    for line in iter(sys.stdin.readline, ""):
        child = os.fork()
        if not child:
            run_and_exit(partial(_command, *json.loads(line)))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _command(
    arguments: list[str], folder: str, environment: dict[str, str], streams: str, timeout: float
) -> int:
    from signoff.cli import main

    # The default action of this signal ends the process even if it hangs in a system call.
    signal.setitimer(signal.ITIMER_REAL, timeout)
    for number, name in enumerate(("in", "out", "err")):
        flags = os.O_RDONLY if name == "in" else os.O_WRONLY | os.O_CREAT
        opened = os.open(Path(streams) / name, flags, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    return main(arguments)


if __name__ == "__main__":
    serve()
