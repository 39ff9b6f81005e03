"""Keeps open pages up to date: streams what changes, and answers their refreshes.

An event says which runs have changed and how far they are; readers fetch what they show of them.
Its id is a position, a run and the number of a commit in its journal. A reader that connects again
with its last id gets everything since.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus

from anyio.to_thread import run_sync
from fastapi import Request
from fastapi.responses import Response, StreamingResponse
from fastapi.sse import format_sse_event
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from signoff.app.json_documents import run_info
from signoff.app.runs.store_watch import ChangeWatcher, StoreChange
from signoff.app.settings.project import Project
from signoff.core.errors import StoreBusy, StoreError, UnknownName
from signoff.documents.control_characters import json_text
from signoff.runtime.store_port import Position, RunId
from signoff.surfaces.web.guard import CALLER, CHECK, CallerCheck
from signoff.surfaces.web.route_params import ProjectPool

MOST_STREAMS = 1000
"""Connections at the same time; more are refused."""
WRITE_SECONDS = 0.00004
"""About the CPU time of writing an event to one connection."""
HEARTBEAT_SECONDS = 15.0
"""How often a silent connection gets a comment: proxies close those on which nothing happens."""
FIRST_LOOK_SECONDS = 5.0
"""How long to wait for the first look; a database that is locked may keep it from happening."""
RETRY_MILLISECONDS = 1000
EVENT_STREAM = "text/event-stream"

FRESH_SECONDS = 1.0
"""How long a rendered page is used at most: pages show ages to the second."""
MOST_PAGES = 64
"""Pages that are kept; each is as large as a compressed page."""
REFRESH = (b"hx-request", b"true")
"""The header that distinguishes a refresh from opening a page."""

_POSITION = re.compile(r"(\d{1,18})\.(\d{1,18})", re.ASCII)


async def event_stream(request: Request, run: str | None) -> Response:
    """Returns the stream of changes of one run or of all."""
    feed: LiveFeed = request.app.state.feed
    if run is not None and not await feed.exists(run):
        # Browsers stop connecting again only after this answer.
        return Response(status_code=HTTPStatus.NO_CONTENT)
    text = request.headers.get("last-event-id") or request.query_params.get("after", "")
    found = _POSITION.fullmatch(text)
    after = (RunId(int(found[1])), int(found[2])) if found else None
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    events = _events(feed, run, after, request.scope[CHECK])
    return StreamingResponse(events, media_type=EVENT_STREAM, headers=headers)


async def _events(
    feed: LiveFeed, run: str | None, after: Position | None, check: CallerCheck
) -> AsyncIterator[bytes]:
    with feed.subscribe(run) as box:
        try:
            here, missed = await feed.missed(run, after)
            # A reader that has missed something gets its new position with it, not before.
            place = None if missed else _position_text(here)
            yield format_sse_event(id=place, retry=RETRY_MILLISECONDS)
            if missed:
                yield _event(missed, run)
            async for part in _follow(feed, box, check):
                yield part
        except UnknownName:
            yield format_sse_event(event="gone", data_str="{}")
        except StoreError:
            # The status is sent already. The reader connects again, and may be answered then.
            return


async def _follow(feed: LiveFeed, box: NewsBox, check: CallerCheck) -> AsyncIterator[bytes]:
    while True:
        news = await box.take()
        # A session may have been closed, or a token revoked, since the connection was opened.
        if box.closed or check() is None:
            return
        if news is None:
            yield format_sse_event(comment="still here")
            continue
        if news.everything and box.run is not None and not await feed.exists(box.run):
            raise UnknownName("run", box.run)
        yield _event(news, box.run)


def _event(news: StoreChange, run: str | None) -> bytes:
    """Returns news as an event; on the stream of a run, its id is the position of that run."""
    own = [(row.id, row.head) for row in news.rows if row.name == run]
    position = news.last if run is None else own[0] if own else None
    runs = [{**run_info(row), "seq": row.head} for row in news.rows]
    text = json_text({"runs": runs, "everything": news.everything}, ensure_ascii=True)
    return format_sse_event(event="change", data_str=text, id=_position_text(position))


def _position_text(position: Position | None) -> str | None:
    return f"{position[0]}.{position[1]}" if position is not None else None


class NewsBox:
    """The box of one connection, in which news pile up until it can be written.

    So a slow reader costs no more than a fast one: of several changes of a run it gets the last.
    """

    def __init__(self, run: str | None) -> None:
        """`run` is the only run of interest; None for all."""
        self.run = run
        self.closed = False
        self._news: StoreChange | None = None
        self._ready = asyncio.Event()

    def offer(self, change: StoreChange) -> None:
        """Adds what is of interest in a change of the store."""
        # An open page renders itself again after each event, so it must not hear of other runs.
        if self.run is not None:
            own = tuple(row for row in change.rows if row.name == self.run)
            if not own and not change.everything:
                return
            change = StoreChange(own, change.everything, change.last)
        if self._news is not None:
            # Not written yet: of a run that has changed twice, only the later row counts.
            rows = {row.name: row for row in (*self._news.rows, *change.rows)}
            everything = self._news.everything or change.everything
            change = StoreChange(tuple(rows.values()), everything, change.last)
        self._news = change
        self._ready.set()

    def close(self) -> None:
        """Ends the connection."""
        self.closed = True
        self._ready.set()

    async def take(self) -> StoreChange | None:
        """Returns the news as soon as there are some; None if there are none for a while."""
        with suppress(TimeoutError):
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                await self._ready.wait()
        self._ready.clear()
        news, self._news = self._news, None
        return news


class LiveFeed:
    """Passes what changes in the database on to the open connections of one server."""

    def __init__(self, project: Project, projects: ProjectPool) -> None:
        self._projects = projects
        self._boxes: set[NewsBox] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.version = 0
        """Counts the changes that were passed on."""
        self._watcher = ChangeWatcher(project.store.reopen, self._pass_on)

    @contextmanager
    def subscribe(self, run: str | None) -> Iterator[NewsBox]:
        """Gives a connection its box; raises `StoreBusy` if there are too many connections."""
        if len(self._boxes) >= MOST_STREAMS:
            raise StoreBusy("too many pages are open; close some")
        box = NewsBox(run)
        self._boxes.add(box)
        self._loop = asyncio.get_running_loop()
        self._watcher.start()
        try:
            yield box
        finally:
            self._boxes.discard(box)
            # Without readers nobody needs the news; the next look reports what happened meanwhile.
            if not self._boxes:
                self._watcher.pause()

    async def missed(
        self, run: str | None, after: Position | None
    ) -> tuple[Position | None, StoreChange | None]:
        """Returns how far a run, or everything, is, and what a client at `after` has missed.

        It may repeat what the client knows, and never leaves out anything: the connection has its
        box already, so what is committed while this reads is in there. Raises `UnknownName`.
        """
        if not self._watcher.started.is_set():
            # A commit between reading here and the first look would be reported by neither.
            await run_sync(self._watcher.started.wait, FIRST_LOOK_SECONDS)
        if run is not None:
            row = await self._projects.call(lambda it: it.store.row(run))
            here = (row.id, row.head)
            known = after in (None, here)
            # Another run may have had this name when the page was made.
            other = after is not None and after[0] != row.id
            return here, None if known else StoreChange((row,), other, here)
        news = await self._projects.call(lambda it: it.store.news(after))
        if after is None or (news.complete and not news.rows):
            return news.last, None
        return news.last, StoreChange(tuple(news.rows), not news.complete, news.last)

    async def exists(self, run: str) -> bool:
        """Tells whether a run exists; it may have been deleted under an open page."""
        try:
            await self._projects.call(lambda it: it.store.row(run))
        except UnknownName:
            return False
        return True

    def end_streams(self) -> None:
        """Ends all connections; may be called by a signal handler."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._end_streams)

    def _end_streams(self) -> None:
        for box in self._boxes:
            box.close()

    def close(self) -> None:
        """Ends all connections and stops looking."""
        self._end_streams()
        self._watcher.close()

    def _pass_on(self, change: StoreChange) -> float:
        """Hands a change to the loop; called in the thread that looks at the database."""
        loop = self._loop
        if loop is None or loop.is_closed():
            return 0.0
        # Boxes belong to the loop: only it may wake those who wait for them.
        loop.call_soon_threadsafe(self._distribute, change)
        # As if all of them were interested: under a busy engine, pages may be told a little later.
        return len(self._boxes) * WRITE_SECONDS

    def _distribute(self, change: StoreChange) -> None:
        self.version += 1
        for box in self._boxes:
            box.offer(change)


@dataclass
class _Entry:
    """The page of one key; who holds the lock renders it, the others wait for it."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    version: int = -1
    made_at: float = 0.0
    messages: list[Message] = field(default_factory=list)
    """What was answered; empty if there is no page."""


class PageCache:
    """Keeps rendered pages, by path, query, rights and encoding, until something changes.

    Every open page of a run asks for it again after each change: two hundred of them are answered
    by one rendering. A page that is opened or reloaded always comes from the database.
    """

    def __init__(
        self, app: ASGIApp, version: Callable[[], int], now: Callable[[], float] = time.monotonic
    ) -> None:
        """`version` differs after each change that was sent to open pages."""
        self._app = app
        self._version = version
        self._now = now
        self._entries: OrderedDict[tuple[object, ...], _Entry] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if not _is_refresh(scope):
            await self._app(scope, receive, send)
            return
        messages = await self._messages(self._entry(scope), scope, receive)
        # Outside the lock: the other pages must not wait for a slow reader of this one.
        for message in messages:
            await send(message)

    def _entry(self, scope: Scope) -> _Entry:
        encodings = [value for name, value in scope["headers"] if name == b"accept-encoding"]
        # A page shows its reader's name and only the buttons they may press, so who asks is part
        # of the key: a copy must never cross from one user to another.
        key = (scope.get(CALLER), scope["path"], scope["query_string"], *encodings)
        entry = self._entries.setdefault(key, _Entry())
        self._entries.move_to_end(key)
        if len(self._entries) > MOST_PAGES:
            self._entries.popitem(last=False)
        return entry

    async def _messages(self, entry: _Entry, scope: Scope, receive: Receive) -> list[Message]:
        async with entry.lock:
            version, now = self._version(), self._now()
            if entry.messages and entry.version == version and now - entry.made_at < FRESH_SECONDS:
                return entry.messages
            messages: list[Message] = []

            async def keep(message: Message) -> None:
                messages.append(message)

            entry.messages = []
            await self._app(scope, receive, keep)
            if _is_page(messages):
                # An error is told to each page that asks: it may be gone for the next one.
                entry.version, entry.made_at, entry.messages = version, now, messages
            return messages


def _is_refresh(scope: Scope) -> bool:
    # A stream of events has no end to wait for.
    return (
        scope["type"] == "http"
        and scope["method"] == "GET"
        and REFRESH in scope["headers"]
        and not scope["path"].endswith("/events")
    )


def _is_page(messages: list[Message]) -> bool:
    start = messages[0] if messages else {}
    kinds = [value for name, value in start.get("headers", ()) if name == b"content-type"]
    return start.get("status") == 200 and any(kind.startswith(b"text/html") for kind in kinds)
