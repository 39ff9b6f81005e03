"""The connections of a workflow to its database.

Opening a database takes longer than most steps, and a thousand parallel items must not open
a thousand connections. So all steps of a process share one connection for reading, which each
uses for a moment, and one for writing, which a step holds for its transaction.
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
    """Opens a database when it is first used; closes it when the workflow is garbage-collected."""

    def __init__(self, url: str) -> None:
        self._address = read_address(url)
        self._file: tuple[int, int] | None = None
        """Device and inode of the open file; the path may lead to another file by now."""
        self._reader: SafeDatabaseClient | None = None
        self._writer: SafeDatabaseClient | None = None
        self._lock = threading.Lock()

    def reader(self) -> SafeDatabaseClient:
        """Returns the shared connection for reading."""
        with self._lock:
            return self._current()

    @contextmanager
    def writer(self) -> Iterator[SafeDatabaseClient]:
        """Yields a connection for writing."""
        if self._address.path is None:
            # A server closes connections that are idle for long, and accepts several at a time.
            with SafeDatabaseClient(connect(self._address)) as client:
                yield client
            return
        with self._lock:
            # The step may have run for hours, and a backup may have been restored meanwhile.
            self._current()
            self._writer = self._writer or self._open()
            writer = self._writer
        yield writer

    def _current(self) -> SafeDatabaseClient:
        if self._reader is None or not self._is_current(self._reader):
            self._reader, self._writer = self._open(), None
            self._file = self._file_id()
        return self._reader

    def _open(self) -> SafeDatabaseClient:
        connection = connect(self._address)
        client = SafeDatabaseClient(connection)
        # Nothing closes a workflow, so the connection is closed together with its client.
        weakref.finalize(client, connection.close)
        return client

    def _is_current(self, client: SafeDatabaseClient) -> bool:
        """Returns whether an open connection still leads to the database."""
        if self._address.path is not None:
            # The file is still open, so its inode cannot have been reused.
            return self._file_id() == self._file
        try:
            client.query("SELECT 1 AS alive")
        except StoreError:
            return False
        return True

    def _file_id(self) -> tuple[int, int] | None:
        path = self._address.path
        if path is None:
            return None
        try:
            stat = path.stat()
        except OSError:
            return None
        return stat.st_dev, stat.st_ino
