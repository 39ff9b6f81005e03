"""A real PgBouncer in transaction mode in front of a server, if the machine has the program."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.patience import wait_until

SETTINGS = """\
[databases]
* = host={server} user=postgres

[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
unix_socket_mode = 0777
listen_port = 5432
auth_type = any
pool_mode = transaction
default_pool_size = 2
max_client_conn = 50
logfile = {folder}/log
{more}
"""


def program() -> str | None:
    """Returns the path of the program; Debian installs it where only administrators look."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@contextmanager
def running_pgbouncer(server: Path, folder: Path, more: str = "") -> Iterator[None]:
    """Runs PgBouncer; `server` and `folder` are the folders of the two sockets."""
    file = folder / "pgbouncer.ini"
    file.write_text(SETTINGS.format(server=server, folder=folder, more=more))
    user = None
    if os.geteuid() == 0:
        # It refuses to run as root.
        user = pwd.getpwnam("nobody").pw_uid
        os.chown(folder, user, -1)
    running = subprocess.Popen(
        [program() or "pgbouncer", "-q", file],
        user=user,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(lambda: running.poll() is not None or (folder / ".s.PGSQL.5432").exists())
        assert running.poll() is None, running.communicate()[1]
        yield
    finally:
        running.kill()
        running.communicate()
