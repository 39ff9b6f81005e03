import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.acceptance.desk import Desk

PROGRAM = str(Path(sys.executable).with_name("signoff"))
PATIENCE_SECONDS = 30.0
"""How long anything may take on a busy machine before the test gives up."""


class Site:
    """A folder of its own, and the real `signoff` command in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            "PATH": os.defpath,
            "HOME": str(folder / "nobody"),
            "LANG": "C.UTF-8",
            "PYTHONWARNINGS": "error",
        }
        self._started: list[subprocess.Popen[str]] = []

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def signoff(
        self, *arguments: str, given: str = "", **environment: str
    ) -> subprocess.CompletedProcess[str]:
        """Runs a command to its end, without a terminal."""
        return subprocess.run(
            [PROGRAM, *arguments],
            cwd=self.folder,
            env=self.environment | environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )

    def json(self, *arguments: str) -> Any:
        """Runs a command with --json and returns what it says."""
        return json.loads(self.signoff(*arguments, "--json").stdout)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts a command and leaves it running."""
        process = subprocess.Popen(
            [PROGRAM, *arguments],
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
        """Returns what a file holds, once it is there."""
        path = self.folder / name
        until(lambda: path.exists() and path.read_text() != "")
        return path.read_text()

    def wait_for_file(self, name: str) -> None:
        """Returns once a file is there."""
        until((self.folder / name).exists)

    def end_everything(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()


def until(true: Callable[[], bool]) -> None:
    """Waits for something to become true, not for long."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not true():
        if time.monotonic() > end:
            raise AssertionError("it did not happen in time")
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Tells whether a process runs; one that is only waited for by its parent does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] not in "ZX"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    here = Site(tmp_path)
    yield here
    here.end_everything()
    pid_file = tmp_path / "pid"
    if pid_file.exists() and is_alive(int(pid_file.read_text())):
        os.kill(int(pid_file.read_text()), signal.SIGKILL)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Iterator[Desk]":
    """A project whose agents are programs that play the vendors'."""
    from tests.acceptance.desk import Desk

    here = Desk(tmp_path, monkeypatch)
    yield here
    here.end_everything()
