"""The server over HTTP, for the web server of a project to mount.

The SDK takes seconds to import, and most people who open the page have no use for it. So it is
imported when the first client calls, beside the requests for pages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from signoff.runtime.extras import install_command

if TYPE_CHECKING:
    from signoff.surfaces.mcp.access import ServerOptions

Receive = Callable[[], Any]
Send = Callable[[MutableMapping[str, Any]], Any]


class HttpApp:
    """An ASGI application that serves MCP; `lifespan` has to be open while it is used."""

    def __init__(self, options: Callable[[], ServerOptions]) -> None:
        """`options` is called when the first client comes, and may import the SDK."""
        self._options = options
        self._called = asyncio.Event()
        self._ready = asyncio.Event()
        self._stopped = asyncio.Event()
        self._app: Any = None
        self._missing = False

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Runs what serves the clients, from the first call on."""
        # Its tasks must start and end in the same task, which that of a request cannot be.
        running = asyncio.create_task(self._run())
        try:
            yield
        finally:
            self._stopped.set()
            self._called.set()
            await running

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answers one request."""
        self._called.set()
        await self._ready.wait()
        if self._missing:
            await _refuse(send, f"the extra 'mcp' is missing: {install_command('mcp')}")
            return
        await self._app(scope, receive, send)

    async def _run(self) -> None:
        await self._called.wait()
        if self._stopped.is_set():
            return
        try:
            server = await asyncio.to_thread(self._create)
        except ImportError:
            self._missing = True
            self._ready.set()
            return
        # The guard in front of it has checked the host, the origin and the token.
        server.streamable_http_app(transport_security=None, host="")
        self._app = server.session_manager.handle_request
        async with server.session_manager.run():
            self._ready.set()
            await self._stopped.wait()

    def _create(self) -> Any:
        from signoff.surfaces.mcp.server import SignoffServer

        return SignoffServer(self._options())


async def _refuse(send: Send, message: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": 501, "headers": headers})
    await send({"type": "http.response.body", "body": message.encode()})
