"""The connections a workflow keeps to its database.

Opening a database costs more than most steps, and a thousand items at once must not open a
thousand of them. So all steps of a process share one connection to read by, on which they
take turns for a moment, and one to write by, which belongs to a step for its transaction.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from signoff.errors import StoreError
from signoff.guarded_db.address import read_address
from signoff.guarded_db.client import SafeDatabaseClient, connect


class Connections:
    """Opens a database when it is first needed; closes it when the workflow is forgotten."""

    def __init__(self, url: str) -> None:
        self._address = read_address(url)
        self._file: tuple[int, int] | None = None
        """Which file the connections are to; another one may stand in its place by now."""
        self._reader: SafeDatabaseClient | None = None
        self._writer: SafeDatabaseClient | None = None
        self._turn = threading.Lock()

    def reader(self) -> SafeDatabaseClient:
        """Returns the connection to read by."""
        with self._turn:
            return self._current()

    @contextmanager
    def writer(self) -> Iterator[SafeDatabaseClient]:
        """Gives a connection to write by."""
        if self._address.path is None:
            # A server ends connections that rest too long, and has room for several at a time.
            with SafeDatabaseClient(connect(self._address)) as client:
                yield client
            return
        with self._turn:
            # A step may have taken hours, and the file been put back from somewhere meanwhile.
            self._current()
            self._writer = self._writer or self._opened()
            writer = self._writer
        yield writer

    def _current(self) -> SafeDatabaseClient:
        if self._reader is None or not self._is_current(self._reader):
            self._reader, self._writer = self._opened(), None
            self._file = self._found()
        return self._reader

    def _opened(self) -> SafeDatabaseClient:
        connection = connect(self._address)
        client = SafeDatabaseClient(connection)
        # The workflow may be forgotten at any time, or the program end.
        weakref.finalize(client, connection.close)
        return client

    def _is_current(self, client: SafeDatabaseClient) -> bool:
        """Tells whether a connection that was kept is still one to the database."""
        if self._address.path is not None:
            # The file is kept open, so its number cannot be another's.
            return self._found() == self._file
        try:
            client.query("SELECT 1 AS alive")
        except StoreError:
            return False
        return True

    def _found(self) -> tuple[int, int] | None:
        path = self._address.path
        if path is None:
            return None
        try:
            stat = path.stat()
        except OSError:
            return None
        return stat.st_dev, stat.st_ino
