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
from typing import TYPE_CHECKING, Any, cast

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from signoff._version import __version__
from signoff.app.history import FollowedRuns
from signoff.app.project import Project
from signoff.errors import SignoffError
from signoff.mcp.http import HttpApp
from signoff.web import api, live, login, views
from signoff.web.access import Access, cookie_name
from signoff.web.api.prefix import API
from signoff.web.error_page import error_page
from signoff.web.feed import LiveFeed
from signoff.web.guard import MCP_PATH, RequestGuard
from signoff.web.idempotency import IdempotencyKeys
from signoff.web.page_cache import PageCache
from signoff.web.problems import API_PREFIX, PROBLEM_TYPE, problem, problem_body, problem_of
from signoff.web.projects import ProjectPool

if TYPE_CHECKING:
    from signoff.mcp.access import ServerOptions

GZIP_FROM_BYTES = 1024
GZIP_LEVEL = 5
"""Nearly as small as the highest level, in a fraction of its time."""


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

    mcp = HttpApp(partial(_mcp_options, project, access))

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with mcp.lifespan():
            yield
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
        redirect_slashes=False,
    )
    app.state.projects, app.state.feed, app.state.keys = projects, feed, keys
    app.state.access, app.state.cookie, app.state.hosts = access, cookie, tuple(hosts)
    app.state.followed = FollowedRuns()
    for router in (login.router, live.router, *views.ROUTERS, *api.ROUTERS):
        app.include_router(router)
    app.mount("/static", _Static(directory=str(files("signoff.web") / "static")))
    app.router.routes.append(Route(MCP_PATH, mcp, include_in_schema=False))
    _answer_errors(app)
    _describe(app)
    zipped = GZipMiddleware(app, minimum_size=GZIP_FROM_BYTES, compresslevel=GZIP_LEVEL)
    cached = PageCache(zipped, lambda: feed.version)
    return PageApp(RequestGuard(cached, access, cookie=cookie, hosts=hosts), app, feed)


def _mcp_options(project: Project, access: Access) -> ServerOptions:
    from signoff.mcp.access import ServerOptions

    return ServerOptions(project.cwd, dict(os.environ), page=access.address)


def _describe(app: FastAPI) -> None:
    """Lets the application describe itself as its clients see it."""
    from signoff.web.api.description import describe

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = describe(app)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # the documented way to change it


class _Static(StaticFiles):
    """Style, scripts and pictures; browsers keep them, and ask whether they have changed."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Returns a file, or that it has not changed."""
        response = await super().get_response(path, scope)
        response.headers["cache-control"] = "no-cache"
        return response


def _answer_errors(app: FastAPI) -> None:
    """Answers errors in the form that the caller expects."""

    @app.exception_handler(SignoffError)
    def _known(request: Request, error: Exception) -> Response:
        return error_response(request, problem_of(cast(SignoffError, error)))

    @app.exception_handler(RequestValidationError)
    def _invalid(request: Request, error: Exception) -> Response:
        places = tuple(
            {"where": ".".join(map(str, each["loc"])), "what": each["msg"], "fix": ""}
            for each in cast(RequestValidationError, error).errors()
        )
        detail = "; ".join(f"{each['where']}: {each['what']}" for each in places)
        return error_response(request, problem(422, "InvalidRequest", detail, problems=places))

    @app.exception_handler(HTTPException)
    def _http(request: Request, error: Exception) -> Response:
        status, detail = cast(HTTPException, error).status_code, cast(HTTPException, error).detail
        return error_response(request, problem(status, "HttpError", str(detail)))

    @app.exception_handler(Exception)
    def _unknown(request: Request, error: Exception) -> Response:
        detail = "signoff itself is at fault; its log has the details"
        return error_response(request, problem(500, type(error).__name__, detail))


def error_response(request: Request, document: dict[str, object]) -> Response:
    """Returns a problem as a document or as a page."""
    status = int(str(document["status"]))
    # The database is locked by another process, which takes a moment.
    headers = {"retry-after": "1"} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
    if request.url.path.startswith(API_PREFIX):
        return Response(problem_body(document), status, headers, media_type=PROBLEM_TYPE)
    page = error_page(status, str(document["detail"]))
    return Response(page, status, headers, media_type="text/html")


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
