"""Writes the log records of runs to a file, or to stderr, as the settings say."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import suppress
from logging.handlers import WatchedFileHandler
from pathlib import Path
from time import time
from typing import Any

from signoff.core import events as ev
from signoff.documents.regular_files import create_private
from signoff.observers.history import events_before
from signoff.observers.log_format import FieldFormatter
from signoff.observers.run_log import LOGGER, RunLog
from signoff.observers.setup import ObserverSetup
from signoff.runtime.ports import Notice
from signoff.runtime.store_port import Store


class LogOutput:
    """An observer that logs runs without touching the logging of the program it runs in.

    Lines are written directly and not through a logger: a run has hundreds of records a second, and
    those of one commit are written together.
    """

    def __init__(self, setup: ObserverSetup, *, file: str, json: bool, level: str) -> None:
        """`file` is relative to the project home; empty means stderr."""
        self._open_store = setup.open_store
        self._store: Store | None = None
        self._least: int = logging.getLevelNamesMapping()[level.upper()]
        self._formatter = FieldFormatter(as_json=json, secrets=setup.secrets)
        self._output: PrivateFile | Stderr
        self._output = PrivateFile(setup.folder / Path(file).expanduser()) if file else Stderr()
        self._output.setFormatter(self._formatter)
        self._log = RunLog(log_content=setup.log_content, history=self._history)
        self._warnings = _Warnings(self._output) if file else None
        if self._warnings is not None:
            logging.getLogger("signoff").addHandler(self._warnings)

    def notice(self, notice: Notice) -> None:
        """Logs one notice."""
        line = self._formatter.line
        lines = [
            line(at or time(), level, LOGGER, message, fields)
            for level, message, fields, at in self._log.entries(notice, self._least)
        ]
        if lines:
            self._output.write("".join(f"{each}\n" for each in lines))

    def close(self) -> None:
        """Closes the file."""
        if self._warnings is not None:
            logging.getLogger("signoff").removeHandler(self._warnings)
        self._output.close()
        if self._store is not None:
            self._store.close()

    def _history(self, run: str, seq: int) -> Iterator[ev.Event]:
        # Opened in the observer's thread, and only if a run is resumed.
        self._store = self._store or self._open_store()
        return events_before(self._store, run, seq)


class PrivateFile(WatchedFileHandler):
    """Appends to a file that only its owner can read, and follows it when it is rotated."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, encoding="utf-8")

    def write(self, text: str) -> None:
        """Appends whole lines; raises `OSError`."""
        self.acquire()
        try:
            self.reopenIfNeeded()
            self.stream = self.stream or self._open()
            self.stream.write(text)
            self.flush()
        finally:
            self.release()

    def _open(self) -> Any:
        return open(self.baseFilename, "a", encoding="utf-8", opener=create_private)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802  # logging prescribes it
        """Raises the error, so that it is reported like that of any observer."""
        raise  # noqa: PLE0704  # called by `emit` while it handles the error


class Stderr(logging.StreamHandler[Any]):
    """Writes to stderr; it is looked up each time, because a live view replaces it."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record."""
        self.write(f"{self.format(record)}\n")

    def write(self, text: str) -> None:
        """Writes whole lines."""
        # A closed stream must not affect the run.
        with suppress(OSError, ValueError):
            print(text, end="", file=sys.stderr, flush=True)


class _Warnings(logging.Handler):
    """Passes on signoff's own warnings, which have no other way into the file."""

    def __init__(self, handler: logging.Handler) -> None:
        super().__init__(logging.WARNING)
        self._file = handler

    def emit(self, record: logging.LogRecord) -> None:
        """Passes on one record, unless it is about a run: those are written already."""
        if record.name != LOGGER:
            with suppress(OSError, ValueError):
                self._file.handle(record)
