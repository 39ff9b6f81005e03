"""Keeps run directories up to date while runs are active, off their critical path.

The observer only notes which runs have changed. A separate thread, with its own store
connection, does the writing. Changes in quick succession are written together; a run
that stops is written at once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from signoff.core.events import RunStopped
from signoff.errors import SignoffError
from signoff.runtime.ports import Notice, Recorded
from signoff.runtime.store_port import Store
from signoff.store.rundir.directory import NextSteps, RunDirectory
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
        layout_of: Callable[[str], Layout] = lambda _notation: Layout(),
        next_steps: NextSteps = lambda _row, _state: (),
        disk: Disk | None = None,
        interval: float = INTERVAL_SECONDS,
    ) -> None:
        """`open_store`, usually a store's `reopen`, is called by the writing thread."""
        self._root = root
        self._open_store = open_store
        self._layout_of = layout_of
        self._next_steps = next_steps
        self._disk = disk
        self._interval = interval
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closing = False
        self._due: dict[str, float] = {}
        """When each changed run is to be written, on the monotonic clock."""
        self._failures: dict[str, str] = {}
        """Why the last write of a run failed."""

    def notice(self, notice: Notice) -> None:
        """Notes that a run has changed."""
        if not isinstance(notice, Recorded):
            return
        at_rest = any(isinstance(event, RunStopped) for event in notice.events)
        due = time.monotonic() + (0.0 if at_rest else self._interval)
        with self._changed:
            if self._closing:
                return
            self._due[notice.run] = min(due, self._due.get(notice.run, due))
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run_thread, name="signoff-run-directory", daemon=True
                )
                self._thread.start()

    def close(self) -> None:
        """Writes all remaining changes, tries failed runs once more and ends the thread."""
        with self._changed:
            if not self._closing:
                self._due |= dict.fromkeys(self._failures, 0.0)
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join()

    def _run_thread(self) -> None:
        with ExitStack() as stack:
            directory: RunDirectory | None = None
            while (run := self._next_run()) is not None:
                problem = ""
                try:
                    directory = directory or self._open(stack)
                    directory.catch_up(run)
                except SignoffError as error:
                    problem = str(error)
                except Exception as error:  # noqa: BLE001  # `close` must still write other runs
                    problem = repr(error)
                self._finish(run, problem)

    def _open(self, stack: ExitStack) -> RunDirectory:
        """Opens the thread's own connection, which is closed when the thread ends."""
        store = self._open_store()
        stack.enter_context(suppress(SignoffError))
        stack.callback(store.close)
        return RunDirectory(
            self._root,
            store,
            layout_of=self._layout_of,
            next_steps=self._next_steps,
            disk=self._disk,
        )

    def _next_run(self) -> str | None:
        """Waits for a run that is due and returns it; None when everything is written."""
        with self._changed:
            while self._due or not self._closing:
                run = min(self._due, key=self._due.__getitem__, default=None)
                wait = None if run is None else self._due[run] - time.monotonic()
                if run is not None and wait is not None and (wait <= 0 or self._closing):
                    del self._due[run]
                    return run
                self._changed.wait(wait)
            return None

    def _finish(self, run: str, problem: str) -> None:
        with self._changed:
            previous = self._failures.pop(run, "")
            if problem:
                self._failures[run] = problem
        # The same failure may repeat twice a second, so only a new one is logged.
        if problem and problem != previous:
            _log.warning("the directory of run %s is not up to date: %s", run, problem)
