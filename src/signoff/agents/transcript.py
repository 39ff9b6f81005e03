"""A program's output, split into lines as it arrives and limited in size.

Lines that are JSON objects are passed on as they arrive, so their text can be displayed
live. The whole output is kept for programs that print plain text or one JSON document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from signoff.errors import AgentBadOutput

MAX_OUTPUT_BYTES = 64_000_000
"""A program that prints more than this never ends; it is stopped."""

_JSON_START = re.compile(r"\s*(?:\{\s*\"|\[\s*[{\"])")


class Transcript:
    """Standard output of one program run."""

    def __init__(
        self, on_object: Callable[[dict[str, Any]], None], on_line: Callable[[str], None]
    ) -> None:
        """Takes the callbacks for JSON objects and for other lines."""
        self._on_object = on_object
        self._on_line = on_line
        self._output = bytearray()
        self._line_start = 0
        self._objects = 0

    def add(self, chunk: bytes) -> None:
        """Adds the next chunk; raises `AgentBadOutput` when the output grows too large."""
        if len(self._output) + len(chunk) > MAX_OUTPUT_BYTES:
            raise AgentBadOutput(
                f"it printed more than {MAX_OUTPUT_BYTES // 1_000_000} MB and was stopped; "
                "ask for less, or check what it repeats"
            )
        self._output += chunk
        while (end := self._output.find(b"\n", self._line_start)) >= 0:
            self._end_line(end)
            self._line_start = end + 1

    def close(self) -> None:
        """Ends the last line; a single JSON document over many lines is passed on whole."""
        if self._line_start < len(self._output):
            self._end_line(len(self._output))
            self._line_start = len(self._output)
        if self._objects or not _JSON_START.match(self.text[:200]):
            return
        try:
            document = json.loads(self.text)
        except ValueError:
            return
        for part in document if isinstance(document, list) else [document]:
            if isinstance(part, dict):
                self._on_object(part)

    @property
    def text(self) -> str:
        """The whole output; bytes that are not UTF-8 become replacement characters."""
        return self._output.decode("utf-8", "replace")

    @property
    def is_valid_utf8(self) -> bool:
        """Whether every byte could be decoded."""
        try:
            self._output.decode("utf-8")
        except UnicodeDecodeError:
            return False
        return True

    @property
    def is_truncated_json(self) -> bool:
        """Whether it starts as JSON and breaks off; such a document must not pass as text."""
        text = self.text
        if not _JSON_START.match(text[:200]):
            return False
        try:
            json.JSONDecoder().raw_decode(text.lstrip())
        except ValueError:
            return True
        return False

    def _end_line(self, end: int) -> None:
        line = self._output[self._line_start : end].decode("utf-8", "replace").strip()
        if not line:
            return
        data = _parse_object(line)
        if data is None:
            self._on_line(line)
            return
        self._objects += 1
        self._on_object(data)


def _parse_object(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        data = json.loads(line)
    except ValueError:
        return None
    return data if isinstance(data, dict) else None


class LineSplitter:
    """Splits a byte stream into lines as it arrives."""

    MAX_BYTES = 20_000
    """How much is kept of a line that does not end."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line
        self._rest = b""

    def add(self, chunk: bytes) -> None:
        """Adds the next chunk."""
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[-self.MAX_BYTES :]
        for line in lines:
            self._on_line(line.decode("utf-8", "replace"))
