"""A stretch of network between a client and a server that a test can cut."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NAME = ".s.PGSQL.5432"


class CutConnection:
    """Passes everything on between clients and a server's socket, until `cut` is called."""

    def __init__(self, server: Path, folder: Path) -> None:
        self._server = server
        self.folder = folder
        self._cut_at: bytes | None = None
        self.then = b""
        self._refuses = False
        self._links: list[_Link] = []
        self.before_cut: Callable[[], object] = lambda: None
        """What happens while the client waits for the answer that it does not get."""
        self.cuts = 0
        self.refused = 0
        """How often a client found no network."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / NAME))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_after(self, text: str, then: str = "") -> None:
        """Cuts the next connection that sends this, after the server did it and before it says so.

        The client cannot know then whether it was done. With `then`, the connection is cut when it
        sends that afterwards, such as the COMMIT of what it has sent.
        """
        self._cut_at, self.then = text.encode(), then.encode()

    def refuse(self, refuses: bool = True) -> None:
        """Refuses new connections, as while a server restarts."""
        self._refuses = refuses

    def cut(self) -> None:
        """Cuts all connections, and refuses new ones until the test allows them again."""
        self.refuse()
        for link in self._links:
            link.end()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                if self._refuses:
                    self.refused += 1
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server / NAME))
                link = _Link(self, client, server)
                self._links.append(link)
                threading.Thread(target=link.forward, daemon=True).start()
                threading.Thread(target=link.back, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def take_cut(self, data: bytes) -> bool:
        if self._cut_at is None or self._cut_at not in data:
            return False
        self._cut_at = None
        return True


class _Link:
    def __init__(self, owner: CutConnection, client: socket.socket, server: socket.socket) -> None:
        self._owner, self._client, self._server = owner, client, server
        self._armed = self._cutting = False

    def forward(self) -> None:
        with suppress(OSError):
            while data := self._client.recv(1 << 16):
                self._armed = self._armed or self._owner.take_cut(data)
                self._cutting = self._cutting or (self._armed and self._owner.then in data)
                self._server.sendall(data)
        self.end()

    def back(self) -> None:
        with suppress(OSError):
            while data := self._server.recv(1 << 16):
                if self._cutting:
                    # The server has answered, so it has done it.
                    self._owner.before_cut()
                    self._owner.cuts += 1
                    break
                self._client.sendall(data)
        self.end()

    def end(self) -> None:
        for each in (self._client, self._server):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@contextmanager
def cut_connection(server: Path, folder: Path) -> Iterator[CutConnection]:
    """Yields a stretch of network to a server, with its own socket in a folder."""
    cut = CutConnection(server, folder)
    try:
        yield cut
    finally:
        cut.close()
