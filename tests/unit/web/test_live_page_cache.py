import asyncio
from typing import Any

import httpx
import pytest
from starlette.types import Message, Receive, Scope, Send

from signoff.web.access import AccessScope, Caller
from signoff.web.guard import CALLER
from signoff.web.live import PageCache

PAGE = [(b"content-type", b"text/html; charset=utf-8")]
ANN, BOB = (Caller(name, AccessScope.DECIDE) for name in ("ann", "bob"))


class Routes:
    """Answers each request with its number, once it may."""

    def __init__(self) -> None:
        self.asked = 0
        self.was_asked = asyncio.Event()
        self.status = 200
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        self.asked += 1
        self.was_asked.set()
        body = str(self.asked).encode()
        await self.may_answer.wait()
        if self.status == 0:
            raise RuntimeError
        await send({"type": "http.response.start", "status": self.status, "headers": PAGE})
        await send({"type": "http.response.body", "body": body})


class Pages:
    """Open pages in front of the routes."""

    def __init__(self) -> None:
        self.routes = Routes()
        self.version = 1
        self.time = 0.0
        self._app = PageCache(self.routes, lambda: self.version, lambda: self.time)

    async def refresh(
        self, path: str = "/", caller: Caller = ANN, headers: Any = None, **more: Any
    ) -> str:
        """Returns what a page gets."""
        sent: list[Message] = []

        async def send(message: Message) -> None:
            sent.append(message)

        async def receive() -> Message:
            raise AssertionError

        scope = {
            "type": "http", "method": "GET", "path": path, "query_string": b"", CALLER: caller,
            "headers": [(b"hx-request", b"true")] if headers is None else headers, **more,
        }  # fmt: skip
        await self._app(scope, receive, send)
        return b"".join(each.get("body", b"") for each in sent).decode()


async def test_pages_that_show_the_same_are_rendered_once() -> None:
    """Two hundred pages of a run would take two hundred times as long otherwise."""
    pages = Pages()
    pages.routes.may_answer.clear()
    waiting = [asyncio.ensure_future(pages.refresh()) for _ in range(20)]
    await pages.routes.was_asked.wait()
    pages.routes.may_answer.set()

    assert await asyncio.gather(*waiting) == ["1"] * 20
    assert pages.routes.asked == 1


@pytest.mark.parametrize(
    "other",
    [
        {"path": "/runs/other"},
        {"query_string": b"from=1"},
        {"caller": BOB},
        {"caller": ANN._replace(scope=AccessScope.READ)},
        {"headers": [(b"hx-request", b"true"), (b"accept-encoding", b"gzip")]},
        {"headers": []},
        {"method": "POST"},
        {"path": "/events"},
    ],
    ids=str,
)
async def test_a_request_that_differs_has_an_answer_of_its_own(other: dict[str, Any]) -> None:
    """One user's page must not be shown to another, and a page that is opened is never a copy."""
    pages = Pages()
    await pages.refresh()

    assert await pages.refresh(**other) == "2"
    assert await pages.refresh() == "1"


async def test_the_server_shares_refreshes_of_a_user(browser: httpx.AsyncClient) -> None:
    """The parts work together: a copy is complete, compressed, and has all headers."""
    headers = {"hx-request": "true"}
    first, second = [await browser.get("/", headers=headers) for _ in range(2)]

    assert second.text == first.text
    assert "Nothing waits for you" in second.text
    assert second.headers["content-security-policy"]
    assert second.headers["content-encoding"] == "gzip"
