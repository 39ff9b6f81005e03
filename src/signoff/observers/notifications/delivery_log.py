"""Remembers what was delivered, so that a process that died is made up for by the next one.

It is a file next to the database. A line `DOCUMENT TARGET` is a delivery. A line `since TARGET
TIME` says from when on a target gets notifications, so that a new one is not sent the past. Lines
are only appended. If one is lost, a notification is sent again, and its id tells the receiver.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from signoff.documents.file_lock import file_lock
from signoff.documents.regular_files import create_private, read_regular, replace_private

MOST_LINES = 20_000
"""From here on, the older half is dropped: those are too old to be sent again anyway."""


MOST_BYTES = 10_000_000
"""Far more than that many lines have; a file that is larger was not written by this."""


class DeliveryLog:
    """The deliveries of a project, of all its processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._delivered: set[str] = set()
        self._since: dict[str, float] = {}
        self._read()

    def since(self, target: str, now: float) -> float:
        """Returns from when on a target gets notifications; from now on if it is new."""
        if target not in self._since:
            self._since[target] = now
            self._append(f"since {target} {now!r}")
        return self._since[target]

    def has(self, document: str, target: str) -> bool:
        """Tells whether a document was delivered to a target."""
        return f"{document} {target}" in self._delivered

    def add(self, document: str, target: str) -> None:
        """Remembers a delivery."""
        line = f"{document} {target}"
        self._delivered.add(line)
        self._append(line)

    def _append(self, line: str) -> None:
        # A full disk costs a repeated notification, and no more than that.
        with suppress(OSError):
            handle = create_private(self._path, os.O_WRONLY | os.O_APPEND)
            try:
                os.write(handle, f"{line}\n".encode())
            finally:
                os.close(handle)

    def _read(self) -> None:
        try:
            lines = read_regular(self._path, MOST_BYTES).decode("utf-8", "replace").splitlines()
        except OSError:
            return
        if len(lines) > MOST_LINES:
            lines = self._shorten(lines)
        for line in lines:
            match line.split():
                case ["since", target, moment]:
                    with suppress(ValueError):
                        self._since.setdefault(target, float(moment))
                case [_document, _target]:
                    self._delivered.add(line)

    def _shorten(self, lines: list[str]) -> list[str]:
        starts = [line for line in lines if line.startswith("since ")]
        kept = [*starts, *(line for line in lines[-MOST_LINES // 2 :] if line not in starts)]
        # Not every system has such locks; the file is then shortened another time.
        with suppress(OSError, ImportError), file_lock(self._path):
            replace_private(self._path, [f"{line}\n" for line in kept])
        return kept
