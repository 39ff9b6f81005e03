"""Passes what changes in the database on to the open connections.

Each connection has a small box in which news pile up until it can be written, so a slow reader
costs no more than a fast one: of several changes of a run it gets the last. What a change takes
is done once for all connections where it can be: its event is the same for every page of a run.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from anyio.to_thread import run_sync

from signoff.app.changes import ChangeWatcher, StoreChange
from signoff.app.project import Project
from signoff.errors import StoreBusy, UnknownName
from signoff.runtime.store_port import Position, RunRow
from signoff.web.guard import CallerCheck
from signoff.web.projects import ProjectPool

MOST_STREAMS = 1000
"""Connections at the same time; more are refused."""
LINGER_SECONDS = 10.0
"""How long the database is still looked at after the last connection ended."""
WRITE_SECONDS = 0.00004
"""About the CPU time of writing an event to one connection."""
HEARTBEAT_SECONDS = 15.0
"""How often each connection gets a comment: proxies close those on which nothing happens."""
FIRST_LOOK_SECONDS = 5.0
"""How long to wait for the first look; a database that is locked may keep it from happening."""
MOST_KNOWN = 1000
"""Runs whose last row is remembered, for clients that connect again and again."""


class Batch:
    """News for one or several connections."""

    __slots__ = ("event", "everything", "last", "rows")

    def __init__(
        self, rows: Sequence[RunRow], last: Position | None, *, everything: bool = False
    ) -> None:
        self.rows = tuple(rows)
        self.last = last
        self.everything = everything
        self.event: bytes | None = None
        """The news as they are sent, once a connection has written them."""

    def merged(self, later: Batch) -> Batch:
        """Returns these news and later ones; of a run that has both, the later one."""
        rows = {row.name: row for row in (*self.rows, *later.rows)}
        everything = self.everything or later.everything
        return Batch(tuple(rows.values()), later.last, everything=everything)


class NewsBox:
    """The box of one connection."""

    def __init__(self, run: str | None) -> None:
        """`run` is the only run of interest; None for all."""
        self.run = run
        self.closed = False
        self._batch: Batch | None = None
        self._ready = asyncio.Event()

    def offer(self, batch: Batch) -> None:
        """Adds news."""
        self._batch = batch if self._batch is None else self._batch.merged(batch)
        self._ready.set()

    def wake(self) -> None:
        """Lets `take` return, even without news."""
        self._ready.set()

    def close(self) -> None:
        """Ends the connection."""
        self.closed = True
        self.wake()

    async def take(self) -> Batch | None:
        """Returns the news as soon as there are some; None if it was only woken up."""
        await self._ready.wait()
        self._ready.clear()
        batch, self._batch = self._batch, None
        return batch


class LiveFeed:
    """Everything that the open connections of one server need to know."""

    def __init__(self, project: Project, projects: ProjectPool) -> None:
        self._projects = projects
        self._subscriptions: set[NewsBox] = set()
        self._known: OrderedDict[str, RunRow] = OrderedDict()
        self._last: Position | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heartbeat: asyncio.TimerHandle | None = None
        self._resting: asyncio.TimerHandle | None = None
        self._callers: dict[CallerCheck, bool] = {}
        """Who may still listen, as of the last change."""
        self.version = 0
        """Counts the changes that were passed on."""
        self._watcher = ChangeWatcher(project.store.reopen, self._pass_on)

    @contextmanager
    def subscribe(self, run: str | None) -> Iterator[NewsBox]:
        """Gives a connection its box; raises `StoreBusy` if there are too many connections."""
        if len(self._subscriptions) >= MOST_STREAMS:
            raise StoreBusy("too many pages are open; close some")
        subscription = NewsBox(run)
        self._subscriptions.add(subscription)
        self._loop = asyncio.get_running_loop()
        self._watcher.start()
        if self._heartbeat is None:
            self._heartbeat = self._loop.call_later(HEARTBEAT_SECONDS, self._beat)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)
            if not self._subscriptions and self._resting is None:
                # Not at once: a client may be about to connect again, even a hundred times.
                self._resting = self._loop.call_later(LINGER_SECONDS, self._rest)

    async def missed(self, run: str | None, after: Position | None) -> Batch | None:
        """Returns what a client at position `after` has missed; raises `UnknownName`.

        It may repeat what the client knows, and never leaves out anything.
        """
        if not self._watcher.started.is_set():
            # A commit between reading here and the first look would be reported by neither.
            await run_sync(self._watcher.started.wait, FIRST_LOOK_SECONDS)
        if run is not None:
            row = await self._row(run)
            here = (row.id, row.head)
            if after is None or after == here:
                return None
            return Batch([row], here, everything=after[0] != row.id)
        if after is not None and after == self._last:
            return None
        news = await self._projects.call(lambda it: it.store.news(after))
        self._last = news.last
        if after is None:
            return None
        return Batch(news.rows, news.last, everything=not news.complete)

    def position(self, run: str | None) -> Position | None:
        """Returns how far a run, or everything, is known to be."""
        row = self._known.get(run) if run is not None else None
        return (row.id, row.head) if row is not None else self._last if run is None else None

    async def exists(self, run: str) -> bool:
        """Tells whether a run exists; it may have been deleted under an open page."""
        try:
            await self._row(run)
        except UnknownName:
            return False
        return True

    def may_listen(self, check: CallerCheck) -> bool:
        """Tells whether a caller is still logged in; asked once for each change and caller."""
        # Two hundred pages of one user have the same session, and are written to one by one.
        if check not in self._callers:
            self._callers[check] = check() is not None
        return self._callers[check]

    async def _row(self, run: str) -> RunRow:
        row = self._known.get(run)
        if row is None:
            row = await self._projects.call(lambda it: it.store.row(run))
            if self._subscriptions:
                # Only while someone looks: it would get old unnoticed.
                self._remember(row)
                row = self._known[run]
        return row

    def end_streams(self) -> None:
        """Ends all connections; may be called by a signal handler."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._end_streams)

    def _end_streams(self) -> None:
        for subscription in self._subscriptions:
            subscription.close()

    def close(self) -> None:
        """Ends all connections and stops looking."""
        self._end_streams()
        if self._heartbeat is not None:
            self._heartbeat.cancel()
        self._watcher.close()

    def _pass_on(self, change: StoreChange) -> float:
        loop = self._loop
        if loop is None or loop.is_closed():
            return 0.0
        loop.call_soon_threadsafe(self._distribute, change)
        names = {None, *(row.name for row in change.rows)}
        interested = [
            each for each in list(self._subscriptions) if change.everything or each.run in names
        ]
        return len(interested) * WRITE_SECONDS

    def _distribute(self, change: StoreChange) -> None:
        if change.everything:
            self._forget()
        for row in change.rows:
            self._remember(row)
        self._last = change.last
        self.version += 1
        self._callers.clear()
        everyone = Batch(change.rows, change.last, everything=change.everything)
        batches: dict[str | None, Batch] = {
            row.name: Batch([row], change.last, everything=change.everything) for row in change.rows
        }
        batches[None] = everyone
        others = Batch([], change.last, everything=True) if change.everything else None
        for subscription in list(self._subscriptions):
            batch = batches.get(subscription.run, others)
            if batch is not None:
                subscription.offer(batch)

    def _beat(self) -> None:
        """Wakes every connection; those without news write a comment."""
        self._heartbeat = None
        self._callers.clear()
        for subscription in list(self._subscriptions):
            subscription.wake()
        if self._subscriptions and self._loop is not None:
            self._heartbeat = self._loop.call_later(HEARTBEAT_SECONDS, self._beat)

    def _rest(self) -> None:
        self._resting = None
        if not self._subscriptions:
            self._watcher.pause()
            self._forget()

    def _remember(self, row: RunRow) -> None:
        known = self._known.get(row.name)
        if known is not None and known.id == row.id and known.head > row.head:
            # Read before a change that was passed on meanwhile. A page that has just as old a row
            # would wait for a change that it has missed.
            return
        self._known[row.name] = row
        self._known.move_to_end(row.name)
        if len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)

    def _forget(self) -> None:
        self._known.clear()
        self._last = None
