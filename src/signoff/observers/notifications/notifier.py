"""Sends notifications: after their event is durable, and never in a run's way.

Everything is sent by one thread with an event loop of its own, each target by its own task, so a
program that hangs delays no webhook. Failed attempts are repeated with growing pauses, for a
limited time. What a process could not deliver before it ended is not sent by another one: the
inbox and `signoff runs` have what waits.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from signoff.core import events as ev
from signoff.error_text import describe_error
from signoff.errors import ConfigError
from signoff.observers.notifications.document import NotifyOn, document, event_of
from signoff.observers.notifications.target import DeliveryFailed, NotificationTarget, build_target
from signoff.observers.setup import ObserverSetup
from signoff.runtime.ports import Notice, Recorded
from signoff.runtime.store_port import Store

TRY_SECONDS = 60.0
"""How long attempts at one delivery are repeated, while there is other work to wait for."""

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 10.0

CLOSE_SECONDS = 6.0
"""How long the end of the program waits for deliveries; less than observers have in all."""

STOP_SECONDS = 1.0
"""How long it waits for what it had to stop."""

PART_FOR_DELIVERIES = 0.8
"""The part of that time after which targets are stopped, so that they can still end politely."""

log = logging.getLogger("signoff")


@dataclass
class Subscription:
    """One entry of `notify`."""

    on: frozenset[NotifyOn]
    target: NotificationTarget
    queue: asyncio.Queue[dict[str, Any]] = field(default_factory=asyncio.Queue)
    """Documents to deliver; an empty one is the last."""
    missed: int = 0
    """How many documents it did not get."""
    problem: str = "it took too long"
    """Why its last attempt failed."""


class Notifier:
    """An observer that notifies the targets of the settings."""

    def __init__(
        self,
        setup: ObserverSetup,
        *,
        targets: Sequence[Mapping[str, Any]],
        pass_env: Sequence[str] = (),
        close_seconds: float = CLOSE_SECONDS,
    ) -> None:
        self._setup = setup
        self._close_seconds = close_seconds
        self._subscriptions = list(_subscriptions(targets, pass_env))
        self._store: Store | None = None
        self._closing = asyncio.Event()
        self._ready: Future[asyncio.AbstractEventLoop] = Future()
        """The loop that sends, once it runs."""
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve()), name="signoff-notifications", daemon=True
        )
        self._thread.start()
        # Whatever ends this program, no program that it has started stays behind.
        atexit.register(self._stop_targets)

    def notice(self, notice: Notice) -> None:
        """Notes the stops of runs."""
        if not isinstance(notice, Recorded):
            return
        for event in notice.events:
            if isinstance(event, ev.RunStopped):
                self._send(notice.run, notice.seq, event)

    def close(self) -> None:
        """Waits for deliveries, and gives up those that take too long."""
        loop = self._ready.result(self._close_seconds)
        loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(self._close_seconds)
        self._stop_targets()
        self._thread.join(STOP_SECONDS)
        atexit.unregister(self._stop_targets)
        for each in self._subscriptions:
            if each.missed:
                many = f"{each.missed} notifications" if each.missed > 1 else "a notification"
                log.warning("%s did not get %s: %s", each.target.name, many, each.problem)
        if self._store is not None:
            self._store.close()

    def _send(self, run: str, seq: int, stop: ev.RunStopped) -> None:
        """Queues a stop for every target that wants it."""
        wanting = [each for each in self._subscriptions if event_of(stop.status) in each.on]
        if not wanting:
            return
        # Opened in the observer's thread, where it is used.
        store = self._store = self._store or self._setup.open_store()
        found = document(store.row(run), seq, stop, store, self._setup)
        if found is not None:
            loop = self._ready.result(self._close_seconds)
            for each in wanting:
                loop.call_soon_threadsafe(each.queue.put_nowait, found)

    def _stop_targets(self) -> None:
        for each in self._subscriptions:
            each.target.stop()

    # In the thread that sends

    async def _serve(self) -> None:
        self._ready.set_result(asyncio.get_running_loop())
        tasks = [asyncio.ensure_future(self._deliver_all(each)) for each in self._subscriptions]
        await self._closing.wait()
        for each in self._subscriptions:
            each.queue.put_nowait({})
        if tasks:
            await asyncio.wait(tasks, timeout=PART_FOR_DELIVERIES * self._close_seconds)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for each in self._subscriptions:
            while not each.queue.empty():
                each.missed += bool(each.queue.get_nowait())

    async def _deliver_all(self, each: Subscription) -> None:
        while found := await each.queue.get():
            # Counted before it is sent: this task may be cancelled at any time.
            each.missed += 1
            if await self._deliver(each, found):
                each.missed -= 1

    async def _deliver(self, each: Subscription, found: dict[str, Any]) -> bool:
        """Makes attempts until one succeeds, or it is time to give up."""
        body = json.dumps(found)
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + TRY_SECONDS, FIRST_PAUSE_SECONDS
        while True:
            try:
                await each.target.send(body)
            except DeliveryFailed as error:
                each.problem = str(error)
                if error.final or loop.time() + pause > until:
                    return False
            except Exception as error:  # noqa: BLE001  # a target must not stop those after it
                each.problem = describe_error(error)
                return False
            else:
                return True
            await asyncio.sleep(pause)
            pause = min(LONGEST_PAUSE_SECONDS, pause * 2)


def _subscriptions(
    targets: Sequence[Mapping[str, Any]], pass_env: Sequence[str]
) -> Iterator[Subscription]:
    for number, each in enumerate(targets):
        try:
            target = build_target(each, pass_env)
        except ConfigError as error:
            log.warning("notify[%d] is off: %s", number, error)
            continue
        yield Subscription(frozenset(map(NotifyOn, each["on"])), target)
