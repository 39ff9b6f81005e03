"""The server over HTTP, alone and behind the guard of the web server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from signoff.app.runs.history import RunNews
from signoff.app.settings.project import Project
from signoff.surfaces.mcp import tools
from signoff.surfaces.mcp.http import HttpApp
from signoff.surfaces.mcp.tools import wait_for_news
from signoff.surfaces.web.access import Access, AccessScope
from signoff.surfaces.web.server import create_app
from tests.patience import until
from tests.unit.surfaces.mcp.review_server import ReviewServer

ADDRESS = "http://127.0.0.1:8717/mcp"


@asynccontextmanager
async def connected(app: Any, token: str = "") -> AsyncIterator[Client]:
    """Connects a client without a socket."""
    headers = {"authorization": f"Bearer {token}"} if token else {}
    transport = httpx2.ASGITransport(app)
    async with (
        httpx2.AsyncClient(transport=transport, headers=headers) as http,
        Client(streamable_http_client(ADDRESS, http_client=http), mode="2026-07-28") as client,
    ):
        yield client


class CutConnections:
    """Serves an application, and can cut the connections of all requests as a network does it."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self.cut = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def receive_or_end() -> Any:
            tasks = [asyncio.ensure_future(receive()), asyncio.ensure_future(self.cut.wait())]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            tasks[1].cancel()
            return {"type": "http.disconnect"} if self.cut.is_set() else tasks[0].result()

        await self._app(scope, receive_or_end, send)
        if self.cut.is_set():
            raise httpx2.ReadError("the connection was cut")


async def test_a_client_that_vanishes_in_a_call_leaves_nothing_behind(
    server: ReviewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent is killed while it waits for a review: the wait ends, and others are served."""
    began, ended = asyncio.Event(), asyncio.Event()

    async def noted(project: Project, run: str, after: int, seconds: float) -> RunNews:
        began.set()
        try:
            return await wait_for_news(project, run, after, seconds)
        finally:
            ended.set()

    monkeypatch.setattr(tools, "wait_for_news", noted)
    app = HttpApp(lambda: server.options)
    network = CutConnections(app)

    async def wait_over_network() -> None:
        async with connected(network) as client:
            await client.call_tool("start", {"workflow": "notice", "name": "one"})
            await client.call_tool("wait", {"run": "one", "cursor": 1000, "seconds": 600})

    async with app.lifespan():
        vanishing = asyncio.create_task(wait_over_network())
        await until(began.is_set, "the wait")
        network.cut.set()
        await until(ended.is_set, "the end of the wait")
        await asyncio.gather(vanishing, return_exceptions=True)
        async with connected(app) as other:
            shown = await other.call_tool("show", {"run": "one"})

    assert not shown.is_error


async def test_nothing_is_created_before_the_first_client(server: ReviewServer) -> None:
    """A user who only opens the page must not wait for it."""
    created = []

    def options() -> Any:
        created.append(True)
        return server.options

    app = HttpApp(options)
    async with app.lifespan():
        pass

    assert created == []


async def test_a_missing_extra_is_reported(
    server: ReviewServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page works without it."""
    monkeypatch.setitem(sys.modules, "signoff.surfaces.mcp.server", None)
    app = HttpApp(lambda: server.options)
    async with app.lifespan(), httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as http:
        response = await http.post(ADDRESS, json={})

    assert response.status_code == 501
    assert "the extra 'mcp' is missing" in response.text


async def test_the_web_server_lets_agents_in_by_their_token(server: ReviewServer) -> None:
    """The guard of the page protects this path like any other."""
    with server.project() as project:
        access = Access.of(project.home)
        agent = access.new_token("agent", AccessScope.OPERATE, agent=True)
        reader = access.new_token("reader", AccessScope.READ)
        app = create_app(project, access)
        try:
            async with app.routes.router.lifespan_context(app.routes):
                async with connected(app, agent) as client:
                    tools = (await client.list_tools()).tools
                refused = [await _post(app, token) for token in ("", "wrong", reader)]
        finally:
            access.close()

    assert len(tools) == 6
    assert refused == [403, 401, 403]


async def _post(app: Any, token: str) -> int:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), headers=headers) as http:
        return int((await http.post(ADDRESS, json={"jsonrpc": "2.0"})).status_code)
