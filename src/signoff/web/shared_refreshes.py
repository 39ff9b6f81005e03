"""Answers the refreshes of open pages: one rendering for all pages that show the same.

Every open page of a run asks for it again after each change. The first one is answered by the
routes, the others with a copy. While changes follow each other, the next rendering waits in
proportion to what the last one took, and answers every request made meanwhile. Only refreshes
by the page's own script share: a page that is opened or reloaded comes from the database.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from signoff.web.guard import CALLER

SHARED_SECONDS = 1.0
"""How long an answer is shared at most: pages show ages to the second."""
REST_FACTOR = 40
"""A rendering that took a millisecond is followed by a pause of so many of them."""
LONGEST_REST = 1.0
MOST_ANSWERS = 64
"""Answers that are kept; each is as large as a compressed page."""

HTML = b"text/html"
REFRESH = (b"hx-request", b"true")
"""The header that distinguishes a refresh from opening a page."""


class _Answer(NamedTuple):
    made_at: float
    messages: asyncio.Future[list[Message] | None]
    """What was sent; None if it is not to be shared."""


class SharedRefreshes:
    """Middleware between the guard and the routes."""

    def __init__(
        self,
        app: ASGIApp,
        version: Callable[[], int],
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`version` differs after each change that was sent to open pages."""
        self._app = app
        self._version = version
        self._now = now
        self._sleep = sleep
        self._answers: dict[tuple[object, ...], _Answer] = {}
        self._rests: dict[tuple[object, ...], float] = {}
        """When the next rendering may begin."""
        self._answered_version = version()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        key = self._key(scope)
        if key is None:
            await self._app(scope, receive, send)
            return
        known = self._find(key)
        if known is None and (rest := self._rests.get(key, 0.0) - self._now()) > 0:
            await self._sleep(rest)
            known = self._find(key)
        if known is None:
            await self._answer(key, scope, receive, send)
            return
        messages = await asyncio.shield(known.messages)
        if messages is None:
            await self._app(scope, receive, send)
            return
        for message in messages:
            await send(message)

    def _key(self, scope: Scope) -> tuple[object, ...] | None:
        """Returns what refreshes with the same answer have in common; None for other requests."""
        if scope["type"] != "http" or scope["method"] != "GET" or REFRESH not in scope["headers"]:
            return None
        encodings = [value for name, value in scope["headers"] if name == b"accept-encoding"]
        return (scope.get(CALLER), scope["path"], scope["query_string"], *encodings)

    def _find(self, key: tuple[object, ...]) -> _Answer | None:
        version = self._version()
        if version != self._answered_version or len(self._answers) >= MOST_ANSWERS:
            self._answers.clear()
            self._answered_version = version
        known = self._answers.get(key)
        return known if known and self._now() - known.made_at < SHARED_SECONDS else None

    async def _answer(
        self, key: tuple[object, ...], scope: Scope, receive: Receive, send: Send
    ) -> None:
        answer = _Answer(self._now(), asyncio.get_running_loop().create_future())
        self._answers[key] = answer
        messages: list[Message] = []

        async def keep(message: Message) -> None:
            if not messages and not _is_page(message):
                # An error; or the stream of events, which has no end to wait for.
                self._decline(key, answer)
            if answer.messages.done():
                await send(message)
            else:
                # Not sent yet: the other pages must not wait for a slow reader of the first one.
                messages.append(message)

        try:
            await self._app(scope, receive, keep)
        except BaseException:
            self._decline(key, answer)
            raise
        if not answer.messages.done():
            answer.messages.set_result(messages)
            self._rest(key, answer.made_at)
            for message in messages:
                await send(message)

    def _decline(self, key: tuple[object, ...], answer: _Answer) -> None:
        """Lets those who wait for an answer ask for themselves."""
        if self._answers.get(key) is answer:
            del self._answers[key]
        if not answer.messages.done():
            answer.messages.set_result(None)

    def _rest(self, key: tuple[object, ...], begun: float) -> None:
        now = self._now()
        if len(self._rests) >= MOST_ANSWERS:
            self._rests.clear()
        self._rests[key] = now + min(LONGEST_REST, REST_FACTOR * (now - begun))


def _is_page(start: Message) -> bool:
    kinds = [value for name, value in start.get("headers", ()) if name == b"content-type"]
    return start.get("status") == 200 and any(kind.startswith(HTML) for kind in kinds)
