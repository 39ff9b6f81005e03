"""Reads a stream of events in process; httpx would wait for its end."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp, Message


class EventReader:
    """A connection that stays open until the test is done with it."""

    def __init__(self) -> None:
        self.status = 0
        self.ended = False
        self.id = ""
        self._left = asyncio.Event()
        self._messages: asyncio.Queue[Message] = asyncio.Queue()

    async def receive(self) -> Message:
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        await self._messages.put(message)

    def leave(self) -> None:
        self._left.set()

    async def next(self) -> tuple[str, Any]:
        """Returns the next event and its data; ("end", None) when the server ends the stream."""
        while True:
            async with asyncio.timeout(60):
                message = await self._messages.get()
            if message["type"] == "http.response.start":
                self.status = message["status"]
            elif not message.get("more_body"):
                return "end", None
            else:
                fields = dict(_fields(message["body"].decode()))
                self.id = fields.get("id", self.id)
                if "event" in fields:
                    return fields["event"], json.loads(fields["data"])
                return "", None


def _fields(text: str) -> list[tuple[str, str]]:
    pairs = [line.partition(": ") for line in text.splitlines() if line and line[0] != ":"]
    return [(name, value) for name, _, value in pairs]


def scope_of(
    method: str, path: str, query: str, headers: Iterable[tuple[str, str]]
) -> dict[str, object]:
    """Returns what a server hands to an application, byte for byte: a client would correct it."""
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode("utf-8", "replace"),
        "query_string": query.encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
        "server": ("127.0.0.1", 8717),
    }


@asynccontextmanager
async def reading(
    app: ASGIApp, path: str, headers: Mapping[str, str]
) -> AsyncIterator[EventReader]:
    """Opens a stream and closes it at the end."""
    reader = EventReader()
    path, _, query = path.partition("?")
    pairs = {"host": "127.0.0.1:8717", **headers}
    scope = scope_of("GET", path, query, pairs.items())
    task = asyncio.ensure_future(app(scope, reader.receive, reader.send))
    try:
        yield reader
    finally:
        reader.leave()
        async with asyncio.timeout(60):
            await task
