"""Ends a worker that was stopped while its server is away.

A worker that stops gives its runs back, and waits for a lost server to do so. If the server stays
away, that only holds up the service manager, or the person, that stopped the worker. Nothing is
lost without it: the leases end, and another worker takes the runs over.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Self

from signoff.errors import StoreError
from signoff.runtime.store_port import Store

PATIENCE_SECONDS = 3.0
"""How long a worker may take to stop before the server is asked whether it is there."""

ANSWER_SECONDS = 10.0
"""How long the server may take to answer.

Only a network that swallows everything takes that long: a server that is not there refuses at
once, and one that is busy must not cost the hand-over.
"""


class StopWatch:
    """Watches a worker from the moment it is stopped; a thread, since the worker may block."""

    def __init__(self, store: Store, give_up: Callable[[], None]) -> None:
        """`give_up` is called on another thread if the store cannot be reached."""
        self._store = store
        self._give_up = give_up
        self._stopping = threading.Event()
        self._ended = threading.Event()

    def __enter__(self) -> Self:
        """Gets ready to watch; a file is always there, so it needs no watch."""
        if self._store.local_file() is None:
            # Not first in `stopping`: a signal handler that starts a thread may interrupt a start.
            threading.Thread(target=self._watch, name="signoff-stop", daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Ends the watch: the worker has stopped."""
        self._ended.set()
        self._stopping.set()

    def stopping(self) -> None:
        """Begins to watch; safe to call from a signal handler."""
        self._stopping.set()

    def _watch(self) -> None:
        _block_signals()
        self._stopping.wait()
        while not self._ended.wait(PATIENCE_SECONDS):
            if not self._is_reachable():
                self._give_up()
                return

    def _is_reachable(self) -> bool:
        answered = threading.Event()
        # On a thread of its own: where packets vanish, an attempt to connect takes long.
        attempt = threading.Thread(target=self._ask, args=(answered,), daemon=True)
        attempt.start()
        attempt.join(ANSWER_SECONDS)
        return answered.is_set()

    def _ask(self, answered: threading.Event) -> None:
        _block_signals()
        with suppress(StoreError), closing(self._store.reopen()) as store:
            store.changes()
            answered.set()


def _block_signals() -> None:
    """A signal that another thread receives would not wake the event loop."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
