"""A loopback server that plays one vendor's API from a list of turns.

It speaks the wire format; what it says is up to the test. Every request is kept, so a
test can look at what a program really sent.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar


@dataclass(frozen=True)
class Say:
    """The model answers."""

    text: str


@dataclass(frozen=True)
class UseTool:
    """The model wants a tool used, and answers once it saw the outcome."""

    name: str
    arguments: Mapping[str, Any]
    then: str = "Done."
    id: str = "stub"
    """Ends the id of the call; each call of a conversation needs one of its own."""


@dataclass(frozen=True)
class UseTools:
    """The model uses several tools, each after it saw the outcome of the one before."""

    tools: tuple[UseTool, ...]
    then: str = "Done."


@dataclass(frozen=True)
class Fail:
    """The API refuses."""

    status: int
    body: Mapping[str, Any]


@dataclass(frozen=True)
class Hang:
    """The API takes the request and never answers."""


Turn = Say | UseTool | UseTools | Fail | Hang


@dataclass(frozen=True)
class Heard:
    """One request as it came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class VendorStub:
    """Serves until closed; subclasses know how their vendor's answers look."""

    used_tool: ClassVar[str]
    """What a request's JSON contains once a tool's outcome is in it."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.heard: list[Heard] = []
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.over.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def stream(self, heard: Heard, turn: Say | UseTool) -> Iterator[str]:
        """Yields the answer as server-sent events."""
        raise NotImplementedError

    def whole(self, heard: Heard, turn: Say | UseTool) -> Mapping[str, Any]:
        """Returns the answer in one piece, for requests that do not stream."""
        raise NotImplementedError

    def streams(self, heard: Heard) -> bool:
        """Tells whether a request wants its answer in pieces."""
        return bool(heard.body.get("stream"))

    def wants(self, heard: Heard) -> bool:
        """Tells whether a request asks the model anything; others get an empty object."""
        return heard.method == "POST"

    def answer(self, heard: Heard) -> Say | UseTool | Fail | Hang:
        """Returns what the model says now: after its tool was used, its last words."""
        used = json.dumps(heard.body).count(self.used_tool)
        if isinstance(self.turn, UseTools):
            left = self.turn.tools[used:]
            return replace(left[0], id=f"stub{used}") if left else Say(self.turn.then)
        return Say(self.turn.then) if isinstance(self.turn, UseTool) and used else self.turn


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, stub: VendorStub) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.stub = stub
        self.over = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # named by the library
        """Keeps the test's output clean."""

    def do_HEAD(self) -> None:
        self._send(200, b"")

    def do_GET(self) -> None:
        self.server.stub.heard.append(Heard("GET", self.path, dict(self.headers), {}))
        self._json(200, {})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        heard = Heard("POST", self.path, dict(self.headers), json.loads(raw or b"{}"))
        stub = self.server.stub
        stub.heard.append(heard)
        if not stub.wants(heard):
            self._json(200, {})
            return
        match stub.answer(heard):
            case Hang():
                self.server.over.wait(120)
                self.close_connection = True
            case Fail(status, refusal):
                self._json(status, refusal)
            case turn if stub.streams(heard):
                text = "".join(stub.stream(heard, turn))
                self._send(200, text.encode(), "text/event-stream")
            case turn:
                self._json(200, stub.whole(heard, turn))

    def _json(self, status: int, body: Mapping[str, Any]) -> None:
        self._send(status, json.dumps(body).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def event(data: Mapping[str, Any], name: str = "") -> str:
    """Returns one server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n"
