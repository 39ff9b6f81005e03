import os
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest

from signoff.runtime.scratch import remove_leftovers
from tests.patience import wait_until
from tests.stubs.postgres import PACKAGE, NotHereError, PostgresServer, running_server

pytestmark = pytest.mark.slow
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs it as another user")

KILLED = """
import os, signal
from tests.stubs.postgres import running_server

with running_server() as server:
    print(server.folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""

KILLED_DURING_INITDB = """
import os, signal, subprocess
from tests.stubs import postgres

def killed(command, user):
    quiet = subprocess.DEVNULL
    subprocess.Popen(command, stdout=quiet, stderr=quiet, user=user, cwd="/")
    print(command[-1].parent, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

postgres._run = killed
with postgres.running_server():
    pass
"""


def test_a_killed_test_process_leaves_no_server_behind(postgres: PostgresServer) -> None:
    """Servers of crashed test runs would accumulate on the machine."""
    folder = killed_in(KILLED)

    wait_until(lambda: not folder.parent.exists(), "the removal of the server's folder")
    assert str(folder) not in running_programs()


def test_the_next_process_removes_a_folder_without_a_server(postgres: PostgresServer) -> None:
    """The process was killed before it started the server."""
    folder = killed_in(KILLED_DURING_INITDB)
    wait_until(lambda: str(folder) not in running_programs(), "the end of initdb")

    remove_leftovers.cache_clear()
    remove_leftovers()

    assert not folder.parent.exists()


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that only its owner can enter, with the server's package as the installed one."""
    found = find_spec(PACKAGE)
    assert found is not None
    assert found.origin is not None
    package = Path(found.origin).parent
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    for folder in (package, package.with_name(f"{PACKAGE}.libs")):
        (private / folder.name).symlink_to(folder)
    monkeypatch.syspath_prepend(private)
    return private


@as_root
def test_the_server_runs_from_a_copy_if_only_root_can_enter_the_checkout(
    postgres: PostgresServer, private: Path
) -> None:
    """PostgreSQL refuses to run as root, and other users cannot enter root's home."""
    with running_server() as server:
        scratch = server.folder.parent
        with psycopg.connect(server.url()) as db:
            answer = db.execute("SELECT 1").fetchone()

        assert answer == (1,)
        assert server.programs.is_relative_to(scratch)
    assert not scratch.exists()


@as_root
def test_a_private_temporary_folder_is_named_as_the_reason(
    postgres: PostgresServer, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server's data is there too, so a copy does not help."""
    monkeypatch.setattr(tempfile, "tempdir", str(private))

    with pytest.raises(NotHereError, match=str(private)), running_server():
        pass


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
