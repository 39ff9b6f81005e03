"""What a program prints, heard line by line and bounded.

Lines that are JSON objects are handed on as they come, so the text in them can be shown
live; the whole stays at hand for programs that print plain text, or one JSON document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from signoff.errors import AgentBadOutput

MOST_BYTES = 64_000_000
"""A program that prints more than this never ends; it is stopped."""

_JSON_BEGINS = re.compile(r"\s*(?:\{\s*\"|\[\s*[{\"])")


class Transcript:
    """Standard output of one run."""

    def __init__(
        self, event: Callable[[dict[str, Any]], None], plain: Callable[[str], None]
    ) -> None:
        """Takes who hears JSON objects and who hears other lines."""
        self._event = event
        self._plain = plain
        self._all = bytearray()
        self._begin = 0
        """Where the line under way begins."""
        self._objects = 0

    def add(self, chunk: bytes) -> None:
        """Takes the next piece; raises `AgentBadOutput` when there is no end to it."""
        if len(self._all) + len(chunk) > MOST_BYTES:
            raise AgentBadOutput(
                f"it printed more than {MOST_BYTES // 1_000_000} MB and was stopped; "
                "ask for less, or look at what it repeats"
            )
        self._all += chunk
        while (end := self._all.find(b"\n", self._begin)) >= 0:
            self._line(end)
            self._begin = end + 1

    def close(self) -> None:
        """Hears the last line; a single JSON document over many lines is handed on whole."""
        if self._begin < len(self._all):
            self._line(len(self._all))
            self._begin = len(self._all)
        if self._objects or not _JSON_BEGINS.match(self.text[:200]):
            return
        try:
            document = json.loads(self.text)
        except ValueError:
            return
        for part in document if isinstance(document, list) else [document]:
            if isinstance(part, dict):
                self._event(part)

    @property
    def text(self) -> str:
        """All of it; bytes that are not UTF-8 show as replacement characters."""
        return self._all.decode("utf-8", "replace")

    @property
    def damaged(self) -> bool:
        """Whether it is not valid UTF-8."""
        try:
            self._all.decode("utf-8")
        except UnicodeDecodeError:
            return True
        return False

    @property
    def half(self) -> bool:
        """Whether it begins as JSON and breaks off: a cut-off document is no plain text."""
        text = self.text
        if not _JSON_BEGINS.match(text[:200]):
            return False
        try:
            json.JSONDecoder().raw_decode(text.lstrip())
        except ValueError:
            return True
        return False

    def _line(self, end: int) -> None:
        line = self._all[self._begin : end].decode("utf-8", "replace").strip()
        if not line:
            return
        data = _object(line)
        if data is None:
            self._plain(line)
            return
        self._objects += 1
        self._event(data)


def _object(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        data = json.loads(line)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


class Lines:
    """A stream of text cut into lines as it comes."""

    LONGEST = 20_000
    """Bytes of a line without an end that are kept."""

    def __init__(self, line: Callable[[str], None]) -> None:
        """Takes who hears the lines."""
        self._line = line
        self._rest = b""

    def add(self, chunk: bytes) -> None:
        """Takes the next piece."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[-self.LONGEST :]
        for line in lines:
            self._line(line.decode("utf-8", "replace"))
