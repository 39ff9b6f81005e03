"""A loopback server in the test's own event loop that behaves like a model's server.

Tests describe its behavior in the terms of the agent suite; the protocols built on it decide how
that looks byte for byte.
"""

import asyncio
import json
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Self

from tests.agent_harness import (
    Behavior,
    BrokenReply,
    Hang,
    ReceivedRequest,
    Refusal,
    TextReply,
    TruncatedReply,
    Unreachable,
)

PIECE = 9
"""Characters per piece of a streamed answer: enough pieces to matter."""


@dataclass(frozen=True)
class Heard:
    """One request as it came in."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass(frozen=True)
class ErrorResponse:
    """An error as its vendor words it."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str]


class ModelServer(ABC):
    """Serves from entering to leaving, one request per connection."""

    def __init__(self) -> None:
        self.heard: list[Heard] = []
        self.open = 0
        """Connections on which a client is still waiting."""
        self._behaviors: deque[Behavior] = deque()
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.verbatim: list[str] | None = None
        """What to stream to every client, whatever it asks."""
        self.redirect: str | None = None
        """Where to redirect every client instead of answering."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.stop()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, limit=2**20)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await self._server.wait_closed()
            self._server = None

    async def set_behaviors(self, *behaviors: Behavior) -> None:
        self._behaviors = deque(behaviors)
        if isinstance(behaviors[0], Unreachable):
            await self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def received_requests(self) -> list[ReceivedRequest]:
        return [self.question(heard) for heard in self.heard if self.is_question(heard)]

    @abstractmethod
    def is_question(self, heard: Heard) -> bool:
        """Tells a question to the model from a question about it."""

    @abstractmethod
    def question(self, heard: Heard) -> ReceivedRequest:
        """Returns what the model gets to see."""

    @abstractmethod
    def about(self, heard: Heard) -> tuple[int, Mapping[str, Any]]:
        """Answers everything that is no question to the model."""

    @abstractmethod
    def refusal(self, heard: Heard, refuses: Refusal) -> ErrorResponse:
        """Words an error."""

    @abstractmethod
    def stream(self, heard: Heard, says: TextReply | TruncatedReply) -> Iterable[str]:
        """Words an answer piece by piece; the last one makes it complete."""

    content_type = "text/event-stream"

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            heard = await _read(reader)
            await self._respond(heard, reader, writer)
            await writer.drain()
            if heard.headers.get("connection") != "close":
                await reader.read()  # a client that keeps connections is kept waiting
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has left, which is what some tests are about
        finally:
            self.open -= 1
            writer.close()

    async def _respond(
        self, heard: Heard, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.heard.append(heard)
        if not self.is_question(heard):
            _send_json(writer, *self.about(heard))
            return
        if self.redirect is not None:
            _send_json(writer, 307, {}, {"location": self.redirect})
            return
        if self.verbatim is not None:
            await _send_stream(writer, self.content_type, self.verbatim)
            return
        behavior = self._behaviors.popleft() if len(self._behaviors) > 1 else self._behaviors[0]
        await self._behave(behavior, heard, reader, writer)

    async def _behave(
        self,
        behavior: Behavior,
        heard: Heard,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        match behavior:
            case Refusal():
                refusal = self.refusal(heard, behavior)
                _send_json(writer, refusal.status, refusal.body, refusal.headers)
            case Hang(""):
                await reader.read()
            case Hang(after):
                self._send_part(writer, heard, after)
                await reader.read()
            case BrokenReply(text):
                self._send_part(writer, heard, text)
                await writer.drain()
                writer.transport.abort()
            case TextReply() | TruncatedReply():
                await _send_stream(writer, self.content_type, self.stream(heard, behavior))

    def _send_part(self, writer: asyncio.StreamWriter, heard: Heard, text: str) -> None:
        """Sends the beginning of an answer: all but what would complete it."""
        _send_head(writer, self.content_type)
        pieces = list(self.stream(heard, TextReply(text)))
        for piece in pieces[: len(pieces) // 2]:
            _send_chunk(writer, piece)


def pieces_of(text: str) -> list[str]:
    """Returns an answer as a model streams it, a few characters at a time."""
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


async def _read(reader: asyncio.StreamReader) -> Heard:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (h.partition(":") for h in lines)}
    raw = await reader.readexactly(int(headers.get("content-length", 0)))
    method, path, _ = first.split(" ")
    return Heard(method, path, headers, json.loads(raw) if raw else {})


def _send_json(
    writer: asyncio.StreamWriter,
    status: int,
    body: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
) -> None:
    raw = json.dumps(body).encode()
    lines = {"content-type": "application/json", "content-length": str(len(raw)), **(headers or {})}
    _send_lines(writer, status, lines)
    writer.write(raw)


async def _send_stream(
    writer: asyncio.StreamWriter, content_type: str, pieces: Iterable[str]
) -> None:
    _send_head(writer, content_type)
    for piece in pieces:
        _send_chunk(writer, piece)
        await writer.drain()
    _send_chunk(writer, "")


def _send_head(writer: asyncio.StreamWriter, content_type: str) -> None:
    _send_lines(writer, 200, {"content-type": content_type, "transfer-encoding": "chunked"})


def _send_lines(writer: asyncio.StreamWriter, status: int, headers: Mapping[str, str]) -> None:
    known = {each.value: each.phrase for each in HTTPStatus}
    lines = [f"HTTP/1.1 {status} {known.get(status, 'Overloaded')}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    writer.write("\r\n".join([*lines, "", ""]).encode("latin-1"))


def _send_chunk(writer: asyncio.StreamWriter, text: str) -> None:
    raw = text.encode()
    writer.write(f"{len(raw):x}\r\n".encode() + raw + b"\r\n")
