"""Answers the refreshes of open pages: one rendering for all pages that show the same.

Every open page of a run asks for it again after each change. The first one is answered by the
routes, the others get a copy. Only refreshes by the page's own script share: a page that is opened
or reloaded comes from the database.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from signoff.web.guard import CALLER

FRESH_SECONDS = 1.0
"""How long a copy is used at most: pages show ages to the second."""
MOST_PAGES = 64
"""Pages that are kept; each is as large as a compressed page."""

REFRESH = (b"hx-request", b"true")
"""The header that distinguishes a refresh from opening a page."""


class _Page(NamedTuple):
    version: int
    made_at: float
    messages: list[Message]


class _Entry:
    """The page of one key; who holds the lock renders it, the others wait for it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.page: _Page | None = None


class PageCache:
    """Middleware between the guard and the routes; a key is path, query, rights and encoding."""

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
        key = (scope.get(CALLER), scope["path"], scope["query_string"], *encodings)
        entry = self._entries.setdefault(key, _Entry())
        self._entries.move_to_end(key)
        if len(self._entries) > MOST_PAGES:
            self._entries.popitem(last=False)
        return entry

    async def _messages(self, entry: _Entry, scope: Scope, receive: Receive) -> list[Message]:
        async with entry.lock:
            version, now = self._version(), self._now()
            page = entry.page
            if page and page.version == version and now - page.made_at < FRESH_SECONDS:
                return page.messages
            messages: list[Message] = []

            async def keep(message: Message) -> None:
                messages.append(message)

            await self._app(scope, receive, keep)
            # An error is told to each page that asks: it may be gone for the next one.
            entry.page = _Page(version, now, messages) if _is_page(messages) else None
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
