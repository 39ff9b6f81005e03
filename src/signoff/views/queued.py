"""Keeps an observer from delaying or breaking the runs it watches.

The engine calls observers on its event loop, so one that waits for a disk or a network would stop
every run of the process. A queued observer only puts the notice into a queue. A thread of its own
passes it on, so it may be as slow as it wants. The queue is bounded: if the observer does not keep
up, notices are dropped and counted. Errors and dropped notices are reported once.
"""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from signoff.core.errors import UnknownName
from signoff.runtime.environment import Secrets
from signoff.runtime.ports import Clock, ClosableObserver, Notice, Observer, Progress, SystemClock
from signoff.runtime.store_port import InboxItem, Store
from signoff.views.exports.run_record import RunRecord

# What an observer gets from the project whose runs it watches.


def _no_record(_store: Store, run: str) -> RunRecord:
    raise UnknownName("run", run, [])


@dataclass(frozen=True, kw_only=True)
class ObserverSetup:
    """The first argument of every factory of observers; the options of the settings follow it."""

    open_store: Callable[[], Store]
    """Opens the project's database again, for use in the observer's thread; close it there."""
    folder: Path
    """The project home: relative paths in the options are relative to it."""
    log_content: bool = False
    """Whether prompts, replies and inputs may leave the database."""
    clock: Clock = field(default_factory=SystemClock)
    secrets: Secrets = field(default_factory=Secrets)
    """Values that must never be written or sent."""
    record_of: Callable[[Store, str], RunRecord] = _no_record
    """Returns what a store has about the run of a name, such as its journal so far."""
    metrics_text: Callable[[Store], str] = lambda _store: ""
    """Computes the metrics of all runs of a store, in the text format of Prometheus."""
    answer_commands: Callable[[InboxItem, Mapping[str, Any]], Sequence[str]] = lambda _, __: ()
    """Returns the exact commands that answer a request, given with its form."""


QUEUED_NOTICES = 1000
"""Notices that may wait; each holds the events of one commit in memory."""

QUEUED_PROGRESS = QUEUED_NOTICES // 2
"""Streamed output is dropped from here on, so that it cannot crowd out what was recorded."""

COLLECT_SECONDS = 0.05
"""How long a notice waits for others, so that they are passed on together."""

CLOSE_SECONDS = 10.0
"""How long the end of a command may wait for all of its observers together."""

log = logging.getLogger("signoff")


class QueuedObserver:
    """Passes notices on to another observer in a thread of its own."""

    def __init__(self, name: str, observer: Observer) -> None:
        self.name = name
        self._observer = observer
        self._queue: SimpleQueue[Notice | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        """Agents may report progress from threads of their own, at the same time."""
        self._dropped = 0
        self._failed = False
        self._finishing = threading.Event()

    def notice(self, notice: Notice) -> None:
        """Queues one notice; returns at once."""
        most = QUEUED_PROGRESS if isinstance(notice, Progress) else QUEUED_NOTICES
        if self._finishing.is_set() or self._queue.qsize() >= most:
            self._dropped += not isinstance(notice, Progress)
            return
        self._queue.put(notice)
        if self._thread is None:
            self._start()

    def finish(self) -> None:
        """Lets the thread end after what is queued; returns at once."""
        self._finishing.set()
        if self._thread is None and isinstance(self._observer, ClosableObserver):
            self._start()
        self._queue.put(None)

    def join(self, seconds: float) -> None:
        """Waits until the thread has ended, at most this long, and reports what was lost."""
        if self._thread is not None:
            self._thread.join(seconds)
            if self._thread.is_alive():
                log.warning("observer %r was still busy and is cut off", self.name)
        if self._dropped:
            log.warning("observer %r was too slow and missed %d events", self.name, self._dropped)

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None:
                return
            # A daemon: an observer that hangs must not keep the program from exiting.
            thread = threading.Thread(
                target=self._pass_on, name=f"signoff-observer-{self.name}", daemon=True
            )
            thread.start()
            self._thread = thread

    def _pass_on(self) -> None:
        while (notice := self._queue.get()) is not None:
            if self._queue.empty():
                # Lets others collect meanwhile: waking up for each one would take more time from
                # the run, which shares the interpreter with this thread, than the work itself.
                self._finishing.wait(COLLECT_SECONDS)
            try:
                self._observer.notice(notice)
            except Exception as error:  # noqa: BLE001  # an observer must never break a run
                self._report(error)
        if isinstance(self._observer, ClosableObserver):
            try:
                self._observer.close()
            except Exception as error:  # noqa: BLE001  # as above
                self._report(error)

    def _report(self, error: Exception) -> None:
        if not self._failed:
            self._failed = True
            log.warning("observer %r failed and may miss events", self.name, exc_info=error)


def close_observers(observers: Iterable[QueuedObserver], seconds: float = CLOSE_SECONDS) -> None:
    """Ends all observers; waits for them together, and not longer than this."""
    listed = list(observers)
    for observer in listed:
        observer.finish()
    until = time.monotonic() + seconds
    with _terminated_by_exception():
        for observer in listed:
            try:
                observer.join(max(0.0, until - time.monotonic()))
            except KeyboardInterrupt:
                # The run has ended, and the user does not want to wait for the rest.
                until = 0.0


@contextmanager
def _terminated_by_exception() -> Iterator[None]:
    """Lets SIGTERM end the wait instead of the process, which would leave programs behind."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        # The program that calls signoff has a handler of its own.
        yield
        return
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
