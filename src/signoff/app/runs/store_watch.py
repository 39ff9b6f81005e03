"""Watches a store for what any process commits to it, once for everyone who wants to know.

A store tells nothing of commits in the middle of a run, so someone has to look. Looking is cheap
while nothing has changed, and one thread looks for all readers. After a change it pauses in
proportion to the work that the change made, so that a busy engine is not slowed down by those who
watch it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from signoff.core.errors import SignoffError
from signoff.runtime.store_port import News, Position, RunRow, Store

LOOK_SECONDS = 0.025
"""How often the store is looked at while someone watches; a look takes some microseconds."""
REST_FACTOR = 40
"""A change that took a millisecond of CPU time is followed by a pause of so many of them."""
TROUBLE_SECONDS = 1.0
"""How long to wait after an error of the store, before it is opened again."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StoreChange:
    """What one look found."""

    rows: tuple[RunRow, ...]
    """The runs that have committed, as they are now."""
    everything: bool
    """Whether anything else may have changed as well."""
    last: Position | None
    """The newest commit."""


class ChangeWatcher:
    """Looks at a store in a thread of its own, and passes on what it finds."""

    def __init__(
        self, open_store: Callable[[], Store], report: Callable[[StoreChange], float]
    ) -> None:
        """`report` is called in the thread; it returns the CPU seconds that it caused."""
        self._open_store = open_store
        self._report = report
        self._wanted = threading.Event()
        self._closed = threading.Event()
        self.started = threading.Event()
        """Set after the first look: whatever is committed from then on is reported."""
        self._last: Position | None = None
        self._others = ""
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Looks from now on; does nothing if it already does."""
        self._wanted.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="signoff-changes", daemon=True)
            self._thread.start()

    def pause(self) -> None:
        """Stops looking until the next `start`, which also finds what happens meanwhile."""
        self._wanted.clear()

    def close(self) -> None:
        """Ends the thread."""
        self._closed.set()
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(timeout=2)

    def _run(self) -> None:
        trouble = ""
        while not self._closed.is_set():
            try:
                with closing(self._open_store()) as store:
                    trouble = ""
                    self._watch(store)
            except SignoffError as error:
                # Locked for too long, damaged, or migrated: it may be usable again later. Until
                # then, the log has it once.
                if str(error) != trouble:
                    _log.warning("cannot read the database: %s", error)
                trouble = str(error)
                self._closed.wait(TROUBLE_SECONDS)

    def _watch(self, store: Store) -> None:
        seen: int | None = None
        while True:
            self._wanted.wait()
            if self._closed.is_set():
                return
            # Asked before reading, so that a commit in between is found by the next look.
            version, spent = store.changes(), 0.0
            if version != seen:
                # CPU time: on a busy machine a clock also counts the waiting, and a reader would
                # get news late because others keep the processor busy.
                seen, begun = version, time.thread_time()
                work = self._pass_on(store.news(self._last))
                spent = time.thread_time() - begun + work
            self._closed.wait(max(LOOK_SECONDS, REST_FACTOR * spent))

    def _pass_on(self, news: News) -> float:
        first = not self.started.is_set()
        others_changed = news.others != self._others
        self._last, self._others = news.last, news.others
        self.started.set()
        everything = not news.complete or others_changed
        if first or not (news.rows or everything):
            return 0.0
        return self._report(StoreChange(tuple(news.rows), everything, news.last))
