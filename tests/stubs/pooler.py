"""A connection pooler in transaction mode, as PgBouncer is often set up, in front of a server.

Each transaction of a client may get another session of the server, and a client cannot set
anything for a session. It speaks the server's protocol on a socket of its own.
"""

import asyncio
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SESSIONS = 2
"""Sessions per client, used in turns, so that state that is left in one is missed at once."""


class TransactionPooler:
    """Passes the messages of clients on to sessions of a server."""

    def __init__(self, server: Path, folder: Path) -> None:
        self._server = server
        self.folder = folder
        self.transactions = 0
        """How often a client was given a session."""

    async def serve(self) -> asyncio.AbstractServer:
        return await asyncio.start_unix_server(self._client, self.folder / ".s.PGSQL.5432")

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sessions: list[Session] = []
        try:
            startup = await _startup(reader)
            if b"options\0" in startup:
                writer.write(_error("08P01", "unsupported startup parameter: options"))
                return
            socket = self._server / ".s.PGSQL.5432"
            sessions += [await Session.open(socket, startup) for _ in range(SESSIONS)]
            writer.write(sessions[0].greeting)
            while True:
                for session in sessions:
                    self.transactions += 1
                    await session.transaction(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            for session in sessions:
                session.writer.close()
            writer.close()


class Session:
    """One session of the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.greeting = b""

    @classmethod
    async def open(cls, path: Path, startup: bytes) -> "Session":
        session = cls(*await asyncio.open_unix_connection(path))
        session.writer.write(struct.pack("!I", len(startup) + 4) + startup)
        while True:
            message = await _message(session.reader)
            session.greeting += message
            if message[:1] == b"Z":
                return session

    async def transaction(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Passes messages on until the server says that no transaction is open."""
        while True:
            request = await _message(reader)
            if request[:1] == b"X":
                raise ConnectionError
            self.writer.write(request)
            if request[:1] not in (b"Q", b"S"):
                continue
            status = await self._answer(writer)
            if status == b"I":
                return

    async def _answer(self, writer: asyncio.StreamWriter) -> bytes:
        while True:
            message = await _message(self.reader)
            writer.write(message)
            if message[:1] == b"Z":
                await writer.drain()
                return message[5:6]


@contextmanager
def running_pooler(server: Path, folder: Path) -> Iterator[TransactionPooler]:
    """Runs a pooler in a thread; `server` and `folder` are the folders of the two sockets."""
    pooler = TransactionPooler(server, folder)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="pooler")
    thread.start()
    listening = asyncio.run_coroutine_threadsafe(pooler.serve(), loop).result()
    try:
        yield pooler
    finally:
        loop.call_soon_threadsafe(listening.close)
        asyncio.run_coroutine_threadsafe(_end_clients(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end_clients() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


async def _startup(reader: asyncio.StreamReader) -> bytes:
    (length,) = struct.unpack("!I", await reader.readexactly(4))
    return await reader.readexactly(length - 4)


async def _message(reader: asyncio.StreamReader) -> bytes:
    header = await reader.readexactly(5)
    (length,) = struct.unpack("!I", header[1:])
    return header + await reader.readexactly(length - 4)


def _error(code: str, text: str) -> bytes:
    fields = f"SFATAL\0VFATAL\0C{code}\0M{text}\0\0".encode()
    return b"E" + struct.pack("!I", len(fields) + 4) + fields
