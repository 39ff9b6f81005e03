"""Keeps run directories up to date while runs are active, off their critical path.

The observer only notes which runs have changed. A separate thread, with its own store
connection, does the writing. Changes in quick succession are written together; a run
that stops is written at once.
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

INTERVAL_SECONDS = 0.5
"""How far a directory may lag behind an active run."""

_log = logging.getLogger(__name__)


class Projection:
    """An observer that writes the directories of the runs it observes."""

    def __init__(
        self,
        root: Path,
        open_store: Callable[[], Store],
        *,
        layouts: Mapping[str, Layout] | None = None,
        disk: Disk | None = None,
        interval: float = INTERVAL_SECONDS,
    ) -> None:
        """`open_store`, usually a store's `reopen`, is called by the writing thread."""
        self._root = root
        self._open_store = open_store
        self._layouts = layouts
        self._disk = disk
        self._interval = interval
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._due: dict[str, float] = {}
        """When each changed run is to be written, on the monotonic clock."""
        self._count = 0
        """How many changes there have been, over all runs; each change gets the next number."""
        self._unwritten: dict[str, int] = {}
        """The number of each run's last change that is not written yet."""
        self._flushes: list[dict[str, int]] = []
        """For each caller of `flush`, the changes it still waits for, by run."""
        self._failures: dict[str, SignoffError] = {}

    def notice(self, notice: Notice) -> None:
        """Notes that a run has changed."""
        if not isinstance(notice, Recorded):
            return
        at_rest = any(isinstance(event, RunStopped) for event in notice.events)
        with self._changed:
            if self._closing:
                return
            self._schedule(notice.run, time.monotonic() + (0.0 if at_rest else self._interval))
            self._start_thread()

    def flush(self, run: str | None = None) -> dict[str, SignoffError]:
        """Waits until all changes so far are written; returns the failures, by run.

        Runs that failed earlier are tried once more.
        """
        with self._changed:
            for name in () if self._closing else self._select(self._failures, run):
                self._schedule(name, 0.0)
            pending = {name: self._unwritten[name] for name in self._select(self._unwritten, run)}
            for name in pending.keys() & self._due.keys():
                self._due[name] = 0.0
            self._flushes.append(pending)
            self._changed.notify_all()
            self._changed.wait_for(lambda: not pending)
            self._flushes = [other for other in self._flushes if other is not pending]
            return {name: self._failures[name] for name in self._select(self._failures, run)}

    def close(self) -> None:
        """Writes all remaining changes and ends the thread."""
        self.flush()
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _select(self, runs: Mapping[str, object], run: str | None) -> list[str]:
        return [name for name in runs if run is None or name == run]

    def _schedule(self, run: str, due: float) -> None:
        self._count += 1
        self._unwritten[run] = self._count
        if due < self._due.get(run, float("inf")):
            self._due[run] = due
            self._changed.notify_all()

    def _start_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run_thread, name="signoff-run-directory", daemon=True
            )
            self._thread.start()

    def _run_thread(self) -> None:
        with ExitStack() as stack:
            directory: RunDirectory | None = None
            while (job := self._next_job()) is not None:
                run, number = job
                failure: SignoffError | None = None
                try:
                    directory = directory or self._open(stack)
                    directory.catch_up(run)
                except SignoffError as error:
                    failure = error
                except Exception as error:  # noqa: BLE001  # the thread must not end: `flush` waits for it
                    failure = SignoffError(f"{type(error).__name__}: {error}")
                self._finish_job(run, number, failure)

    def _open(self, stack: ExitStack) -> RunDirectory:
        """Opens the thread's own connection, which is closed when the thread ends."""
        store = self._open_store()
        stack.enter_context(suppress(SignoffError))
        stack.callback(store.close)
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

    def _finish_job(self, run: str, number: int, failure: SignoffError | None) -> None:
        with self._changed:
            if self._unwritten[run] == number:
                del self._unwritten[run]
            for pending in self._flushes:
                if pending.get(run, number + 1) <= number:
                    del pending[run]
            previous = self._failures.pop(run, None)
            if failure is not None:
                self._failures[run] = failure
            self._changed.notify_all()
        if failure is not None and str(failure) != str(previous):
            _log.warning("the directory of run %s is not up to date: %s", run, failure)
