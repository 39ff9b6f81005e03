import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import wait_until
from tests.stubs.postgres import PostgresServer

pytestmark = pytest.mark.slow

KILLED = """
import os, signal
from tests.stubs.postgres import running_server

with running_server() as server:
    print(server.folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_test_process_leaves_no_server_behind(postgres: PostgresServer) -> None:
    """Servers of crashed test runs would accumulate on the machine."""
    folder = killed_in(KILLED)

    wait_until(lambda: not folder.parent.exists(), "the removal of the server's folder")
    assert str(folder) not in running_programs()


def killed_in(script: str) -> Path:
    """Runs a script that prints the folder of its server and kills itself; returns the folder."""
    root = Path(__file__).parents[2]
    killed = subprocess.run(
        [sys.executable, "-c", script], cwd=root, stdout=subprocess.PIPE, text=True
    )
    folder = Path(killed.stdout.strip())
    assert (killed.returncode, folder.name) == (-9, "pg")
    return folder


def running_programs() -> str:
    """Returns the command lines of all processes, on systems with /proc."""
    found = list(Path("/proc").glob("[0-9]*/cmdline"))
    return "\n".join(text for path in found if (text := _text(path)))


def _text(path: Path) -> str:
    try:
        return path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""
