"""A real HTTP server for webhooks, on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.patience import PATIENCE_SECONDS


class WebhookServer:
    """Answers as it is told, and keeps what it was sent."""

    def __init__(self, answer: Callable[[int], int] = lambda _number: 200) -> None:
        """`answer` returns the status of the n-th request; 0 hangs, 302 redirects."""
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.methods: list[str] = []
        self.over = threading.Event()
        self.redirect_to = ""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.methods.append(self.command)
                outer.headers.append(dict(self.headers))
                outer.bodies.append(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                status = answer(len(outer.bodies))
                if status == 0:
                    outer.over.wait(PATIENCE_SECONDS)
                    return
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", outer.redirect_to)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_GET(self) -> None:
                self.do_POST()

            def log_message(self, *_message: Any) -> None:
                """Prints nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook?key=very-secret"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    @property
    def documents(self) -> list[dict[str, Any]]:
        """What it was sent."""
        return [json.loads(body) for body in self.bodies]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
