"""The connections of a workflow to its database.

Opening a database takes longer than most steps, and a thousand parallel items must not open
a thousand connections. So all steps of a process share one connection for reading, which each
uses for a moment, and one or a few for writing, which a step holds for its transaction.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from signoff.guarded_db.address import Address
from signoff.guarded_db.client import SafeDatabaseClient
from signoff.guarded_db.sources import Source, connect, read_source

MOST_WRITERS = 8
"""Connections to a server that write at the same time; a server or a pool has room for few."""


class Connections:
    """Opens a database when it is first used; closes it when the workflow is garbage-collected."""

    def __init__(self, source: Source) -> None:
        self._source = read_source(source)
        self._path = self._source.path if isinstance(self._source, Address) else None
        self._file: tuple[int, int] | None = None
        """Device and inode of the open file; the path may lead to another file by now."""
        self._reader: SafeDatabaseClient | None = None
        self._leases = 0
        """How many steps use the connection for reading."""
        self._writer: SafeDatabaseClient | None = None
        self._idle: list[SafeDatabaseClient] = []
        """Connections to a server that wrote before."""
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(MOST_WRITERS)

    def reader(self) -> SafeDatabaseClient:
        """Returns the shared connection for reading."""
        with self._lock:
            return self._current()

    def lease(self) -> SafeDatabaseClient:
        """Returns the shared connection for reading; each step calls `release` at its end."""
        with self._lock:
            reader = self._current()
            self._leases += 1
            return reader

    def release(self) -> None:
        """Gives a connection of the program's own pool back when no step uses it any more."""
        with self._lock:
            self._leases -= 1
            if self._leases or isinstance(self._source, Address) or self._reader is None:
                return
            reader, self._reader = self._reader, None
        reader.close()

    @contextmanager
    def writer(self) -> Iterator[SafeDatabaseClient]:
        """Yields a connection for writing."""
        if self._path is None:
            # A server accepts several at a time.
            with self._turns:
                yield from self._server_writer()
            return
        with self._lock:
            # The step may have run for hours, and a backup may have been restored meanwhile.
            self._current()
            self._writer = self._writer or self._open()
            writer = self._writer
        yield writer

    def _server_writer(self) -> Iterator[SafeDatabaseClient]:
        client = self._idle_writer() or self._open()
        try:
            yield client
        except BaseException:
            # Its state is unknown.
            client.close()
            raise
        if not isinstance(self._source, Address):
            # A connection of the program's own pool is given back at once, and without the lock:
            # a thread that waits for the pool may have it.
            client.close()
            return
        self._idle.append(client)

    def _idle_writer(self) -> SafeDatabaseClient | None:
        while True:
            try:
                client = self._idle.pop()
            except IndexError:
                return None
            if client.is_alive():
                return client
            client.close()

    def _current(self) -> SafeDatabaseClient:
        if self._reader is None or not self._is_current(self._reader):
            self._reader, self._writer = self._open(), None
            self._file = self._file_id()
        return self._reader

    def _open(self) -> SafeDatabaseClient:
        connection = connect(self._source)
        client = SafeDatabaseClient(connection)
        # Nothing closes a workflow, so the connection is closed together with its client.
        weakref.finalize(client, connection.close)
        return client

    def _is_current(self, client: SafeDatabaseClient) -> bool:
        """Returns whether an open connection still leads to the database."""
        if self._path is not None:
            # The file is still open, so its inode cannot have been reused.
            return self._file_id() == self._file
        return client.is_alive()

    def _file_id(self) -> tuple[int, int] | None:
        if self._path is None:
            return None
        try:
            stat = os.stat(self._path)  # noqa: PTH116  # twice per step, in half the time
        except OSError:
            return None
        return stat.st_dev, stat.st_ino
