"""Serves metrics over HTTP while a run is driven, for Prometheus to scrape.

The page is `signoff metrics`, computed from the database when it is asked for, so it covers all
runs, whichever processes drive them. It is served on the loopback address unless the settings say
otherwise. Web pages in a browser on this machine can send requests there too, under any host name
that resolves to it; a request for a host that is not listed is refused, so they read nothing.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from socketserver import ThreadingMixIn
from typing import Any
from urllib.parse import urlsplit
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from signoff.core.errors import ConfigError, SignoffError
from signoff.runtime.extras import install_command
from signoff.runtime.ports import Notice
from signoff.views.queued import ObserverSetup

PATH = "/metrics"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
REQUEST_SECONDS = 10.0
"""How long a client may take between two parts of its request."""
FRESH_SECONDS = 1.0
"""How long a page is served again: many readers at once must not read the database each."""


class MetricsServer:
    """An observer that watches nothing: it only runs as long as the command does."""

    def __init__(
        self, setup: ObserverSetup, *, port: int, host: str = "127.0.0.1", hosts: Sequence[str] = ()
    ) -> None:
        """`hosts` are further names under which other machines reach it."""
        if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
            raise ConfigError(f"port must be a number from 0 to 65535, not {port!r}")
        if isinstance(hosts, str) or not all(isinstance(each, str) for each in hosts):
            raise ConfigError("hosts must be a list of host names")
        if find_spec("prometheus_client") is None:
            install = install_command("prometheus")
            raise ConfigError(f"metrics need the extra 'prometheus'; install it: {install}")
        self._setup = setup
        self._hosts = {each.lower() for each in (*LOOPBACK, host, *hosts)}
        self._lock = threading.Lock()
        self._text, self._until = "", 0.0
        server = _IPv6Server if ":" in host else _Server
        self._server = make_server(host, port, self._answer, server, _QuietHandler)
        self._store = setup.open_store()
        self.port: int = self._server.server_port
        # Ends within `poll_interval`, which a worker that ends waits for; the default is longer.
        serve = {"poll_interval": 0.05}
        threading.Thread(target=self._server.serve_forever, kwargs=serve, daemon=True).start()

    def notice(self, notice: Notice) -> None:
        """Does nothing: metrics are computed when they are read."""

    def close(self) -> None:
        """Stops serving."""
        self._server.shutdown()
        self._server.server_close()
        self._store.close()

    def text(self, now: float) -> str:
        """Returns the metrics, computed at most once a second, however many ask."""
        with self._lock:
            if now >= self._until:
                self._text = self._setup.metrics_text(self._store)
                self._until = now + FRESH_SECONDS
            return self._text

    def _answer(self, request: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """Answers one request, as WSGI has it."""
        status, text = self._page(request)
        start(status, [("Content-Type", CONTENT_TYPE)])
        return [text.encode()]

    def _page(self, request: dict[str, Any]) -> tuple[str, str]:
        if _host_name(request.get("HTTP_HOST", "")) not in self._hosts:
            return "403 Forbidden", "unknown host; add it to hosts in the settings\n"
        if request["REQUEST_METHOD"] != "GET":
            return "405 Method Not Allowed", "metrics can only be read\n"
        if request["PATH_INFO"] != PATH:
            return "404 Not Found", f"metrics are at {PATH}\n"
        try:
            return "200 OK", self.text(time.monotonic())
        except (SignoffError, OSError):
            # Its details would show paths of this machine to whoever asks.
            return "503 Service Unavailable", "the database cannot be read\n"


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Prints nothing: a client that goes away is none of the run's concern."""


class _IPv6Server(_Server):
    address_family = socket.AF_INET6


class _QuietHandler(WSGIRequestHandler):
    timeout = REQUEST_SECONDS

    def log_message(self, *_words: object) -> None:
        """Prints nothing: stderr belongs to the run."""


def _host_name(host: str) -> str:
    """Returns the name in a Host header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
