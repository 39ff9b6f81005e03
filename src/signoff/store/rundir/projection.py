"""Keeps run directories up to date while runs go on, off their critical path.

An observer that only takes note; a thread of its own, with its own connection, does
the writing. What comes in short succession is written once, a run that comes to rest
is written at once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from signoff.core.events import RunStopped
from signoff.errors import SignoffError
from signoff.runtime.ports import Notice, Recorded
from signoff.runtime.store_port import Store
from signoff.store.rundir.directory import RunDirectory
from signoff.store.rundir.disk import Disk
from signoff.store.rundir.layout import Layout

EVERY_SECONDS = 0.5
"""How far a directory may lag behind a run that is at work."""

_log = logging.getLogger(__name__)


class Projection:
    """Writes the directories of the runs it hears of."""

    def __init__(
        self,
        root: Path,
        open_store: Callable[[], Store],
        *,
        layouts: Mapping[str, Layout] | None = None,
        disk: Disk | None = None,
        every: float = EVERY_SECONDS,
    ) -> None:
        """`open_store` (as a rule, some store's `reopen`) is called by the writing thread."""
        self._root = root
        self._open_store = open_store
        self._layouts = layouts
        self._disk = disk
        self._every = every
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._due: dict[str, float] = {}
        """When each run that has news is to be written, on the monotonic clock."""
        self._count = 0
        """Numbers the news of all runs."""
        self._unwritten: dict[str, int] = {}
        """The last news of each run that has some."""
        self._flushes: list[dict[str, int]] = []
        """What each caller of `flush` still waits for."""
        self._failures: dict[str, SignoffError] = {}

    def notice(self, notice: Notice) -> None:
        """Takes note that a run has news."""
        if not isinstance(notice, Recorded):
            return
        rests = any(isinstance(event, RunStopped) for event in notice.events)
        with self._changed:
            if self._closing:
                return
            self._hear_of(notice.run, time.monotonic() + (0.0 if rests else self._every))
            self._start_thread()

    def flush(self, run: str | None = None) -> dict[str, SignoffError]:
        """Waits until all news heard so far is written; returns what could not be, by run.

        What failed earlier is tried once more.
        """
        with self._changed:
            for name in () if self._closing else self._in(self._failures, run):
                self._hear_of(name, 0.0)
            wanted = {name: self._unwritten[name] for name in self._in(self._unwritten, run)}
            for name in wanted.keys() & self._due.keys():
                self._due[name] = 0.0
            self._flushes.append(wanted)
            self._changed.notify_all()
            self._changed.wait_for(lambda: not wanted)
            self._flushes = [other for other in self._flushes if other is not wanted]
            return {name: self._failures[name] for name in self._in(self._failures, run)}

    def close(self) -> None:
        """Writes what is left and ends the thread."""
        self.flush()
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _in(self, runs: Mapping[str, object], run: str | None) -> list[str]:
        return [name for name in runs if run is None or name == run]

    def _hear_of(self, run: str, due: float) -> None:
        self._count += 1
        self._unwritten[run] = self._count
        if due < self._due.get(run, float("inf")):
            self._due[run] = due
            self._changed.notify_all()

    def _start_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._work, name="signoff-run-directory", daemon=True
            )
            self._thread.start()

    def _work(self) -> None:
        with ExitStack() as held:
            directory: RunDirectory | None = None
            while (job := self._next_job()) is not None:
                run, news = job
                failure: SignoffError | None = None
                try:
                    directory = directory or self._open(held)
                    directory.catch_up(run)
                except SignoffError as error:
                    failure = error
                except Exception as error:  # noqa: BLE001  # nothing in here may end the thread: flush waits for it
                    failure = SignoffError(f"{type(error).__name__}: {error}")
                self._settle(run, news, failure)

    def _open(self, held: ExitStack) -> RunDirectory:
        """Opens the thread's own connection, which is let go with the thread."""
        store = self._open_store()
        held.enter_context(suppress(SignoffError))
        held.callback(store.close)
        return RunDirectory(self._root, store, layouts=self._layouts, disk=self._disk)

    def _next_job(self) -> tuple[str, int] | None:
        with self._changed:
            while self._due or not self._closing:
                run = min(self._due, key=self._due.__getitem__, default=None)
                wait = None if run is None else self._due[run] - time.monotonic()
                if run is not None and wait is not None and (wait <= 0 or self._closing):
                    del self._due[run]
                    return run, self._unwritten[run]
                self._changed.wait(wait)
            return None

    def _settle(self, run: str, news: int, failure: SignoffError | None) -> None:
        with self._changed:
            if self._unwritten[run] == news:
                del self._unwritten[run]
            for wanted in self._flushes:
                if wanted.get(run, news + 1) <= news:
                    del wanted[run]
            known = self._failures.pop(run, None)
            if failure is not None:
                self._failures[run] = failure
            self._changed.notify_all()
        if failure is not None and str(failure) != str(known):
            _log.warning("the directory of run %s is behind: %s", run, failure)
