"""The server over HTTP, for the web server of a project to mount.

The SDK takes seconds to import, and most people who open the page have no use for it. So it is
imported when the first client calls, beside the requests for pages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from signoff.runtime.extras import install_command

if TYPE_CHECKING:
    from signoff.surfaces.mcp.access import ServerOptions


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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        self._called.set()
        await self._ready.wait()
        if self._missing:
            missing = f"the extra 'mcp' is missing: {install_command('mcp')}"
            await PlainTextResponse(missing, HTTPStatus.NOT_IMPLEMENTED)(scope, receive, send)
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
