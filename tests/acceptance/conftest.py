import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.patience import PATIENCE_SECONDS, wait_until, written

if TYPE_CHECKING:
    from tests.acceptance.desk import Desk

PROGRAM = str(Path(sys.executable).with_name("signoff"))


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
        wait_until(lambda: written(path), f"the writing of {name}")
        return path.read_text()

    def wait_for_file(self, name: str) -> None:
        """Returns once a file is there."""
        wait_until((self.folder / name).exists, f"the file {name}")

    def end_everything(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()


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
