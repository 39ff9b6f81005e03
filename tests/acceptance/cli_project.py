"""A folder for one test, and the signoff command in it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from signoff.surfaces.cli import main
from tests.acceptance.forked_program import ForkedProgram
from tests.acceptance.suggested_commands import check_suggestions
from tests.patience import PATIENCE_SECONDS, wait_until, written
from tests.run_stores import server_stores, store_variables

PROGRAM = str(Path(sys.executable).with_name("signoff"))

ENVIRONMENT = {
    "PATH": os.defpath,
    "LANG": "C.UTF-8",
    "PYTHONWARNINGS": "error",
    "TMPDIR": tempfile.gettempdir(),
    "SIGNOFF_TRUST": "1",
}


@dataclass(frozen=True)
class CommandResult:
    """A command's exit code and output."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The value it printed with --json."""
        return json.loads(self.out)


class CliProject:
    """Runs signoff commands as a user in this folder would, with no settings of the machine."""

    def __init__(self, folder: Path, server: ForkedProgram) -> None:
        self.folder = folder
        self.environment = {**ENVIRONMENT, **store_variables(), "HOME": str(folder / "home")}
        self._server = server
        self._started: list[subprocess.Popen[str]] = []

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def signoff(
        self, *arguments: str, input_text: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end, without a terminal."""
        variables = self.environment | environment
        if "PYTHONPATH" not in variables:
            done = self._server.run(arguments, self.folder, variables, input_text, PATIENCE_SECONDS)
            check_suggestions(done.stdout, done.stderr)
            return done
        # Python reads this variable when it starts, so it needs a process of its own.
        return subprocess.run(
            [PROGRAM, *arguments],
            cwd=self.folder,
            env=variables,
            input=input_text,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )

    def enter(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Moves the test's own process into this project, for `call`."""
        monkeypatch.chdir(self.folder)
        for name in ("PATH", "HOME", "SIGNOFF_DATABASE"):
            if name in self.environment:
                monkeypatch.setenv(name, self.environment[name])
        for name in ("SIGNOFF_HOME", "XDG_CONFIG_HOME"):
            monkeypatch.delenv(name, raising=False)

    def call(self, *arguments: str) -> CommandResult:
        """Runs a command in the test's own process; see `enter`."""
        out, err = StringIO(), StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = main(arguments)
        check_suggestions(out.getvalue(), err.getvalue())
        return CommandResult(code, out.getvalue(), err.getvalue())

    def json(self, *arguments: str) -> Any:
        """Runs a command with --json and returns the value it prints."""
        return json.loads(self.signoff(*arguments, "--json").stdout)

    def start(self, *arguments: str, program: str = PROGRAM) -> subprocess.Popen[str]:
        """Starts the program and lets it run; one that is killed must be the installed one."""
        process = subprocess.Popen(
            [program, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def wait_for(self, name: str) -> str:
        """Returns the text of a file once it is completely written."""
        path = self.folder / name
        wait_until(lambda: written(path), f"the writing of {name}")
        return path.read_text()

    def sent_prompts(self, run: str = "one", step: str = "*", number: str = "*") -> list[str]:
        """Returns the prompts of a run's step and round, as the files of the run show them."""
        rounds = self.folder / ".signoff/runs" / run / "iterations"
        files = sorted(rounds.glob(f"{number}/**/prompt_{step}_*.txt"))
        return [file.read_text() for file in files]

    def wait_for_file(self, name: str) -> None:
        """Returns once a file exists."""
        wait_until((self.folder / name).exists, f"the file {name}")

    def close(self) -> None:
        """Kills every program that is still running."""
        if (self.folder / ".signoff" / "worker.log").exists():
            for worker in self.json("workers"):
                # One that was started in the background is no child of this process.
                os.kill(worker["pid"], signal.SIGKILL)
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()


@contextmanager
def worker_for_server(folder: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """Runs the worker that runs in a server need; for those in a file, signoff starts one."""
    if server_stores() is None:
        yield
        return
    silent = subprocess.DEVNULL
    with subprocess.Popen(
        [PROGRAM, "worker"], cwd=folder, env=environment, stdout=silent, stderr=silent
    ) as worker:
        try:
            yield
        finally:
            worker.kill()


def is_alive(pid: int) -> bool:
    """Returns whether a process runs; one that its parent has yet to reap does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
