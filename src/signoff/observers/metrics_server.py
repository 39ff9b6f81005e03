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
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from signoff.errors import ConfigError, SignoffError
from signoff.observers.setup import ObserverSetup
from signoff.runtime.ports import Notice
from signoff.telemetry.prometheus import CONTENT_TYPE

PATH = "/metrics"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
MOST_REQUESTS = 8
"""Requests at the same time; more are turned away."""
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
        store = setup.open_store()
        self._store = store
        try:
            self._server = _Server(host, port, {*LOOPBACK, host, *hosts})
        except BaseException:
            store.close()
            raise
        self._server.text = CachedText(lambda: setup.metrics_text(store))
        self.port: int = self._server.server_port
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            # How long a worker that ends waits for this server; the default is half a second.
            kwargs={"poll_interval": 0.05},
            name="signoff-metrics",
            daemon=True,
        )
        self._thread.start()

    def notice(self, notice: Notice) -> None:
        """Does nothing: metrics are computed when they are read."""

    def close(self) -> None:
        """Stops serving."""
        self._server.shutdown()
        self._server.server_close()
        self._store.close()


class CachedText:
    """A text that is computed at most once a second, however many ask for it."""

    def __init__(
        self, compute: Callable[[], str], now: Callable[[], float] = time.monotonic
    ) -> None:
        self._compute = compute
        self._now = now
        self._lock = threading.Lock()
        self._text = ""
        self._until = 0.0

    def __call__(self) -> str:
        """Returns the text."""
        with self._lock:
            if self._now() >= self._until:
                self._text = self._compute()
                self._until = self._now() + FRESH_SECONDS
            return self._text


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    text: Callable[[], str]

    def __init__(self, host: str, port: int, hosts: set[str]) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.hosts = {each.lower() for each in hosts}
        self._slots = threading.BoundedSemaphore(MOST_REQUESTS)
        super().__init__((host, port), _MetricsPage)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answers in a thread, unless too many are busy."""
        if self._slots.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answers one request."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._slots.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Prints nothing: a client that goes away is none of the run's concern."""


class _MetricsPage(BaseHTTPRequestHandler):
    timeout = REQUEST_SECONDS
    server_version = "signoff"
    sys_version = ""
    error_message_format = "%(code)d %(message)s\n"
    error_content_type = "text/plain"
    server: _Server

    def do_GET(self) -> None:
        """Answers with the metrics."""
        if _host_name(self.headers.get("Host", "")) not in self.server.hosts:
            self.send_error(HTTPStatus.FORBIDDEN, "unknown host; add it to hosts in the settings")
            return
        if self.path.partition("?")[0] != PATH:
            self.send_error(HTTPStatus.NOT_FOUND, f"metrics are at {PATH}")
            return
        try:
            body = self.server.text().encode()
        except (SignoffError, OSError):
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, "the database cannot be read")
            return
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_words: object) -> None:
        """Prints nothing: stderr belongs to the run."""


def _host_name(host: str) -> str:
    """Returns the name in a Host header, without its port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
