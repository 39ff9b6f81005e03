"""The port for notifications of a store, so that processes need not poll it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Protocol


class Topic(StrEnum):
    """What a message of a store is about. It means "look again" and carries no data."""

    WORK = "work"
    """A run was handed over, answered or given back: a worker may be able to continue it."""
    CANCEL = "cancel"
    """A run is to be cancelled."""
    RUNS = "runs"
    """A run was created, came to rest, or opened a request."""


class StoreListener(Protocol):
    """Hears what other processes do to a store.

    A message can be lost, so subscribers still poll now and then. Commits in the middle of a run
    send none.
    """

    @property
    def is_live(self) -> bool:
        """Whether messages arrive now; otherwise the store has to be asked."""
        ...

    def subscribe(
        self, topics: Collection[Topic], hear: Callable[[], object]
    ) -> Callable[[], None]:
        """Calls `hear`, in another thread, for each message about a topic; returns what ends that.

        It is also called once messages arrive, and when they no longer do: what happened before
        may have been missed.
        """
        ...


@contextmanager
def subscribed(
    listener: StoreListener | None, topics: Collection[Topic], hear: Callable[[], object]
) -> Iterator[Callable[[], bool]]:
    """Lets a store's listener call `hear` inside; gives what tells whether messages arrive."""
    if listener is None:
        yield lambda: False
        return
    unsubscribe = listener.subscribe(topics, hear)
    try:
        yield lambda: listener.is_live
    finally:
        unsubscribe()
