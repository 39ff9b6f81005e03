"""The workers of a soak: real processes that are killed and replaced."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path

from benchmarks.soak import fork_server
from signoff.runtime.owner import birth_of

ROOT = Path(__file__).parents[2]


class WorkerPool:
    """Keeps a number of workers running."""

    def __init__(self, folder: Path, size: int, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._size = size
        self._numbers = count(1)
        self._births: dict[int, str | None] = {}
        """The workers that should be running, and when each was started."""
        self._logs: dict[int, Path] = {}
        self.started = 0
        self.ended_by_themselves: list[str] = []
        """The last lines of workers that were not killed."""
        self._server = subprocess.Popen(
            [sys.executable, "-P", fork_server.__file__, str(ROOT)],
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    @property
    def pids(self) -> list[int]:
        """The workers that should be running, the oldest first."""
        return list(self._births)

    def fill(self) -> None:
        """Replaces the workers that are gone, and notes those that ended by themselves."""
        for pid in self.pids:
            if birth_of(pid) != self._births[pid]:
                self.ended_by_themselves.append(self._last_line(pid))
                del self._births[pid]
        while len(self._births) < self._size:
            self._start()

    def kill(self, pid: int) -> None:
        """Kills a worker, and returns when it is gone."""
        born = self._births.pop(pid)
        if birth_of(pid) == born:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def close(self) -> None:
        """Ends all workers and the process that forks them."""
        for pid in self.pids:
            self.kill(pid)
        self._server.communicate()

    def _start(self) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        log = self._folder / f"worker-{next(self._numbers)}.log"
        self._server.stdin.write(f"{log}\n".encode())
        self._server.stdin.flush()
        pid = int(self._server.stdout.readline())
        self._births[pid], self._logs[pid] = birth_of(pid), log
        self.started += 1

    def _last_line(self, pid: int) -> str:
        lines = self._logs[pid].read_text("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else "(no output)"
