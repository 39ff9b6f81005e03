"""Observers that append what runs do to a file, as lines of JSON."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TextIO

from signoff.core import events as ev
from signoff.documents.control_characters import json_text
from signoff.documents.regular_files import create_private
from signoff.runtime.ports import Notice, Progress, Recorded, Retrying

log = logging.getLogger("signoff")


class JsonlObserver:
    """Appends everything that happens to a file, one JSON object per line.

    A new file is readable by its owner only, because prompts and replies are in it. If it can no
    longer be written, one warning is logged and the run continues without it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = open(path, "a", encoding="utf-8", opener=create_private)  # noqa: SIM115  # Path.open takes no opener; `close` closes it

    def notice(self, notice: Notice) -> None:
        """Writes one notice."""
        match notice:
            case Recorded(run=run, events=events):
                self._write([{"run": run, **ev.to_json(event)} for event in events])
            case Progress() | Retrying():
                kind = type(notice).__name__.lower()
                self._write([{"run": notice.run, "e": kind, **asdict(notice)}])

    def _write(self, values: Iterable[Any]) -> None:
        if self._file is None:
            return
        try:
            self._file.write("".join(f"{json_text(each, ensure_ascii=True)}\n" for each in values))
            # Other programs follow the file while the run goes on.
            self._file.flush()
        except OSError as error:
            self._give_up(self._file, error)

    def close(self) -> None:
        """Closes the file."""
        if self._file is None:
            return
        try:
            self._file.close()
        except OSError as error:
            self._give_up(self._file, error)
        self._file = None

    def _give_up(self, file: TextIO, error: OSError) -> None:
        self._file = None
        # Closing tries once more to write what is left.
        with suppress(OSError):
            file.close()
        log.warning(
            "%s cannot be written, so events are missing in it: %s",
            self._path,
            error.strerror or error,
        )
