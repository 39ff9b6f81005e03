"""The web server of a project: puts the parts together, and serves them on this machine."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPStatus
from importlib.resources import files
from types import FrameType
from typing import TYPE_CHECKING

import uvicorn
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import RedirectResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from signoff._version import __version__
from signoff.app.runs.history import FollowedRuns
from signoff.app.settings.project import Project
from signoff.surfaces.mcp.http import HttpApp
from signoff.surfaces.web.access import SESSION_SECONDS, Access, cookie_name
from signoff.surfaces.web.api import routes
from signoff.surfaces.web.guard import CALLER, LOGIN_PATH, RequestGuard
from signoff.surfaces.web.idempotency import IdempotencyKeys
from signoff.surfaces.web.live import LiveFeed, PageCache
from signoff.surfaces.web.problems import MCP_PATH, answer_errors, problem, problem_response
from signoff.surfaces.web.route_params import API, ProjectPool
from signoff.surfaces.web.views import frame, home, passkeys, request, run, start

if TYPE_CHECKING:
    from signoff.surfaces.mcp.access import ServerOptions

GZIP_FROM_BYTES = 1024
GZIP_LEVEL = 5
"""Nearly as small as the highest level, in a fraction of its time."""

login = APIRouter(include_in_schema=False)
"""Logging in by a link that works once, and logging out."""


class PageApp:
    """The whole server as an ASGI application."""

    def __init__(self, guard: ASGIApp, routes: FastAPI, feed: LiveFeed) -> None:
        self._guard = guard
        self.routes = routes
        """What is behind the guard; it also describes the REST interface."""
        self.feed = feed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request, if the guard lets it pass."""
        await self._guard(scope, receive, send)


def create_app(project: Project, access: Access, *, hosts: Collection[str] = ()) -> PageApp:
    """Returns the server of a project.

    `hosts` are the names, besides those of this machine, under which it may be reached.
    """
    cookie, projects = cookie_name(project.home), ProjectPool(project)
    feed, keys = LiveFeed(project, projects), IdempotencyKeys.of(project.home)

    def mcp_options() -> ServerOptions:
        from signoff.surfaces.mcp.access import ServerOptions

        return ServerOptions(project.cwd, dict(os.environ), page=access.address)

    mcp = HttpApp(mcp_options)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with mcp.lifespan():
            yield
        # First the streams, which use the projects; then the projects, which use the database.
        feed.close()
        projects.close()
        keys.close()

    app = FastAPI(
        title="signoff",
        version=__version__,
        openapi_url=f"{API}/openapi.json",
        # The interactive pages load scripts from other hosts.
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
        # A redirect would make two addresses of one page; a path that no route has is not found.
        redirect_slashes=False,
    )
    app.state.projects, app.state.feed, app.state.keys = projects, feed, keys
    app.state.access, app.state.cookie, app.state.hosts = access, cookie, tuple(hosts)
    app.state.followed = FollowedRuns()
    pages = (frame, home, run, request, start, passkeys)
    for each in (login, *(module.router for module in (*pages, routes))):
        app.include_router(each)
    app.mount("/static", _Static(directory=str(files("signoff.surfaces.web") / "static")))
    app.router.routes.append(Route(MCP_PATH, mcp, include_in_schema=False))
    answer_errors(app)
    # The documented way to change how an application describes itself.
    app.openapi = partial(routes.describe, app)  # type: ignore[method-assign]
    # From the inside out: pages are kept as they are sent, so that a copy costs no compression, and
    # the guard is outermost, so that not even a copy reaches anyone who may not see it.
    zipped = GZipMiddleware(app, minimum_size=GZIP_FROM_BYTES, compresslevel=GZIP_LEVEL)
    cached = PageCache(zipped, lambda: feed.version)
    return PageApp(RequestGuard(cached, access, cookie=cookie, hosts=hosts), app, feed)


class _Static(StaticFiles):
    """Style, scripts and pictures; browsers keep them, and ask whether they have changed."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Returns a file, or that it has not changed."""
        response = await super().get_response(path, scope)
        response.headers["cache-control"] = "no-cache"
        return response


@login.get(LOGIN_PATH)
def log_in(request: Request, key: str = "", to: str = "/") -> Response:
    """Exchanges the key of a login link for a session, and opens a page of this server."""
    access: Access = request.app.state.access
    secret = access.open_session(key)
    response = RedirectResponse(to if _is_own(to) else "/", HTTPStatus.SEE_OTHER)
    if secret is None and request.scope[CALLER] is not None:
        # A used link in the history of a browser that is still logged in.
        return response
    if secret is None:
        return problem_response(LOGIN_PATH, problem(HTTPStatus.UNAUTHORIZED, "NotLoggedIn", ""))
    response.set_cookie(
        request.app.state.cookie,
        secret,
        max_age=int(SESSION_SECONDS),
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@login.post("/logout")
def log_out(request: Request) -> Response:
    """Ends the session of this browser."""
    access: Access = request.app.state.access
    cookie: str = request.app.state.cookie
    access.close_session(request.cookies.get(cookie, ""))
    response = RedirectResponse("/", HTTPStatus.SEE_OTHER)
    response.delete_cookie(cookie, httponly=True, samesite="strict")
    return response


def _is_own(to: str) -> bool:
    """Tells whether an address is a path of this server: `//host` and `/\\host` are not."""
    return to.startswith("/") and not to.startswith(("//", "/\\")) and to.isprintable()


def listen(host: str, port: int) -> socket.socket:
    """Returns a socket that accepts connections; raises `OSError` if the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=128)


def listen_as_localhost(port: int) -> list[socket.socket]:
    """Returns a socket for the other address of `localhost`, which browsers may try first.

    Raises `OSError` if another program has the port there: it would get the login links of those
    who open `localhost`. On a machine without IPv6 there is no such address, and no danger.
    """
    try:
        return [listen("::1", port)]
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise
        return []


def serve(app: PageApp, server_sockets: list[socket.socket], ready: Callable[[], None]) -> None:
    """Serves until the user stops it; calls `ready` once it answers."""
    config = uvicorn.Config(
        app,
        log_config=None,
        # Addresses contain the names of runs and, once, the key of a login link.
        access_log=False,
        lifespan="on",
        server_header=False,
        timeout_graceful_shutdown=2,
        ws="none",
        # No proxy is trusted to say who calls.
        proxy_headers=False,
    )
    server = _PageServer(config, app.feed, ready)
    server.run(sockets=server_sockets)


class _PageServer(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, feed: LiveFeed, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._feed = feed
        self._ready = ready

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Ends the streams of open pages too, which would otherwise be waited for."""
        super().handle_exit(sig, frame)
        self._feed.end_streams()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts to serve, then says so."""
        await super().startup(sockets)
        if self.started:
            self._ready()
