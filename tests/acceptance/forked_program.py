"""Commands that are forked from a server with signoff imported, for tests and for their shells.

Most of the time of a short command is starting Python and importing signoff. A client sends the
arguments, folder, environment and open streams to the server, and gets the exit code. A forked
process is as separate as one started by a shell. README.md and the examples are tested with the
installed program instead, so that a cold start is tested too.
"""

import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from importlib import import_module
from io import BufferedReader, FileIO, TextIOWrapper
from itertools import count
from pathlib import Path

ROOT = Path(__file__).parents[2]
_MOST_BYTES = 1 << 20

RUN_FILE = "run-python-file"
"""Runs a Python file. It is not called `python`, because shells start that with other options."""

# The shell starts Python, because the path of an interpreter in a first line may have no space.
_PROGRAM = """#!/bin/sh
'''exec' "{python}" -ISE "$0" "$@"
' '''
import json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
request = json.dumps([sys.argv, os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [request + b"\\n"], [0, 1, 2])
code = int(server.makefile().readline())
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


class ForkedProgram:
    """Starts the server, and writes both programs into a folder for the search path."""

    def __init__(self, scratch: Path, environment: Mapping[str, str] | None = None) -> None:
        """`environment` is that of the server; each command has one of its own."""
        address = self._address = str(scratch / "socket")
        self._scratch, self._numbers = scratch, count(1)
        self.folder = scratch / "bin"
        self.folder.mkdir()
        self.signoff = str(self.folder / "signoff")
        for name in ("signoff", RUN_FILE):
            program = self.folder / name
            program.write_text(_PROGRAM.format(python=sys.executable, address=address))
            program.chmod(0o755)
        self._process = subprocess.Popen(
            # -P leaves this folder out of the path: a test may write a module of any name.
            [sys.executable, "-P", __file__, address],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def run(
        self,
        arguments: Sequence[str],
        folder: Path,
        environment: Mapping[str, str],
        input_text: str,
        timeout: float,
    ) -> "subprocess.CompletedProcess[str]":
        """Runs a command of signoff to its end, without a terminal."""
        streams = self._scratch / str(next(self._numbers))
        streams.mkdir()
        (streams / "in").write_text(input_text, encoding="utf-8")
        request = json.dumps([["signoff", *arguments], str(folder), dict(environment)])
        with socket.socket(socket.AF_UNIX) as client, ExitStack() as stack:
            client.settimeout(timeout)
            client.connect(self._address)
            opened = [
                stack.enter_context((streams / name).open(mode)).fileno()
                for name, mode in (("in", "rb"), ("out", "wb"), ("err", "wb"))
            ]
            socket.send_fds(client, [f"{request}\n".encode()], opened)
            code = int(client.makefile().readline())
        output, errors = ((streams / name).read_text("utf-8") for name in ("out", "err"))
        return subprocess.CompletedProcess(["signoff", *arguments], code, output, errors)

    def close(self) -> None:
        """Ends the server, and commands whose shell was killed because they took too long."""
        with self._process as server:
            assert server.stdin is not None
            server.stdin.close()
            server.wait()
            with suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)


def serve(address: str) -> None:
    """Runs a command for each connection, until standard input ends."""
    sys.path.append(str(ROOT))
    import_module("tests.preload")
    sys.path.remove(str(ROOT))
    # Again, for the import path of the commands.
    import_module("signoff.documents.entry_points").entry_points("agents")
    # The garbage collectors of the commands then skip everything that was imported.
    gc.freeze()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(16)
        print(flush=True)
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if not os.fork():
                listener.close()
                _supervise(connection)
                os._exit(0)
            connection.close()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass


def _supervise(connection: socket.socket) -> None:
    """Runs one command, and sends its exit code to the program."""
    received, streams, _, _ = socket.recv_fds(connection, _MOST_BYTES, 3)
    while not received.endswith(b"\n"):
        received += connection.recv(_MOST_BYTES)
    child = os.fork()
    if not child:
        from signoff.testing.crash_child import run_and_exit

        connection.close()
        run_and_exit(partial(_command, streams, *json.loads(received)))
    for stream in streams:
        os.close(stream)
    _, status = os.waitpid(child, 0)
    with suppress(OSError):
        connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _command(streams: list[int], argv: list[str], folder: str, environment: dict[str, str]) -> int:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # New objects, because the old ones remember whether their streams could seek.
    sys.stdin = TextIOWrapper(BufferedReader(FileIO(0, closefd=False)), "utf-8")
    sys.stdout, sys.stderr = (
        # Unbuffered, so that both streams are in the order a terminal shows them.
        TextIOWrapper(FileIO(n, "w", closefd=False), "utf-8", write_through=True)
        for n in (1, 2)
    )
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    program, *arguments = argv
    if Path(program).name == RUN_FILE:
        _run_file(*arguments)
        return 0
    from signoff.surfaces.cli import main

    return main(arguments)


def _run_file(path: str) -> None:
    """Runs a file as Python would."""
    sys.argv[:] = [path]
    sys.path.insert(0, str(Path(path).absolute().parent))
    runpy.run_path(path, run_name="__main__")


if __name__ == "__main__":
    serve(sys.argv[1])
