"""Tells a worker that the store may have work for it, as soon as the store says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from signoff.runtime.listener_port import Topic, subscribed
from signoff.runtime.store_port import Store


class WorkSignal:
    """What a worker hears of a store, on its event loop."""

    def __init__(self, is_live: Callable[[], bool], heard: asyncio.Event) -> None:
        self.is_live = is_live
        """Tells whether the store says when there is work; otherwise it has to be asked."""
        self._heard = heard

    async def wait(self, tasks: Iterable[asyncio.Task[None]], seconds: float) -> None:
        """Returns when a task is done, the store has notified, or the time is over.

        What it says between two calls is not lost: the next one returns at once.
        """
        hearing = asyncio.create_task(self._heard.wait())
        try:
            await asyncio.wait(
                {hearing, *tasks}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            hearing.cancel()
        self._heard.clear()


@contextmanager
def work_signal(store: Store) -> Iterator[WorkSignal]:
    """Listens to a store for as long as a worker works."""
    loop, heard = asyncio.get_running_loop(), asyncio.Event()

    def hear() -> None:
        loop.call_soon_threadsafe(heard.set)

    with subscribed(store.listener(), [Topic.WORK], hear) as is_live:
        yield WorkSignal(is_live, heard)
