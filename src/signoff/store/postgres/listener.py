"""Receives the server's notifications: LISTEN on a connection of its own.

A statement that hands over, answers, cancels, creates or releases a run also sends a NOTIFY.
Ordinary commits do not: the server commits transactions that notify one after the other, and eight
processes together would make only a fifth of the commits.

A message means "look again" and carries no data. A lost one costs time and nothing else, because
subscribers still poll now and then. Poolers in transaction mode lose all of them; one is recognized
when the store is opened, and then nothing listens.
"""

from __future__ import annotations

import selectors
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from signoff.core.errors import StoreError
from signoff.runtime.store_port import Topic
from signoff.store.databases import driver
from signoff.store.postgres.connection import ServerConnection
from signoff.store.postgres.queries import channel_of

if TYPE_CHECKING:
    import psycopg

_RETRY_SECONDS = 1.0
_JOIN_SECONDS = 2.0
_ALL = frozenset(Topic)


class ServerListener:
    """Calls subscribers, in a thread, whenever a message arrives; starts with the first of them."""

    def __init__(self, server: ServerConnection) -> None:
        self._server = server
        self._channel = channel_of(server.address.schema)
        self._lock = threading.Lock()
        self._subscriptions: list[_Subscription] = []
        self._thread: threading.Thread | None = None
        self._closed = False
        self._wake: socket.socket | None = None
        """Closed to end the thread."""
        self._live = threading.Event()

    @property
    def is_live(self) -> bool:
        """Whether messages arrive now."""
        return self._live.is_set()

    def subscribe(
        self, topics: Collection[Topic], hear: Callable[[], object]
    ) -> Callable[[], None]:
        """Calls `hear` for each message about a topic; returns what ends that."""
        subscription = _Subscription(frozenset(topics), hear)
        with self._lock:
            self._subscriptions.append(subscription)
            # A pooler is recognized when the store is opened, and there nothing would arrive.
            if self._thread is None and not self._closed and not self._server.is_pooled:
                self._start()
            is_late = self._live.is_set()
        if is_late:
            hear()
        return partial(self._subscriptions.remove, subscription)

    def close(self) -> None:
        """Ends the thread and its connection."""
        with self._lock:
            self._closed = True
        if self._thread is not None and self._wake is not None:
            self._wake.close()
            # It may be connecting, which nothing interrupts.
            self._thread.join(_JOIN_SECONDS)

    def _start(self) -> None:
        self._wake, woken = socket.socketpair()
        self._thread = threading.Thread(
            target=self._run, args=(woken,), name="signoff-listener", daemon=True
        )
        self._thread.start()

    def _run(self, woken: socket.socket) -> None:
        # A signal has to reach the main thread, which waits for it.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        with woken:
            while not self._closed:
                # While the server restarts or fails over, subscribers poll.
                with suppress(driver().Error, StoreError), self._server.another() as db:
                    db.execute(f'LISTEN "{self._channel}"')
                    self._become(live=True)
                    while not self._closed:
                        self._tell(_messages(db, woken), list(self._subscriptions))
                if self._live.is_set():
                    self._become(live=False)
                _wait([woken], _RETRY_SECONDS)

    def _become(self, *, live: bool) -> None:
        """Wakes every subscriber when messages start or stop arriving; some may have been lost.

        A subscriber that joins at the same moment is woken once, here or by `subscribe`.
        """
        with self._lock:
            (self._live.set if live else self._live.clear)()
            subscriptions = list(self._subscriptions)
        self._tell(_ALL, subscriptions)

    def _tell(self, topics: Collection[str], subscriptions: Iterable[_Subscription]) -> None:
        for topics_of, hear in subscriptions:
            # A loop that has just been closed cannot be called any more.
            if not topics_of.isdisjoint(topics):
                with suppress(RuntimeError):
                    hear()


def _messages(db: psycopg.Connection[Any], woken: socket.socket) -> set[str]:
    """Waits for messages, or until the end of this process's interest, when `woken` is readable."""
    _wait([db, woken], None)
    db.pgconn.consume_input()
    messages = set()
    while (note := db.pgconn.notifies()) is not None:
        messages.add(note.extra.decode())
    return messages


class _Subscription(NamedTuple):
    topics: frozenset[Topic]
    hear: Callable[[], object]


def _wait(sources: Sequence[Any], seconds: float | None) -> None:
    """Waits until one of these can be read; unlike `select`, with any number of open files."""
    with selectors.DefaultSelector() as selector:
        for source in sources:
            selector.register(source, selectors.EVENT_READ)
        selector.select(seconds)
