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

MAX_ERROR_LINE_BYTES = 20_000
"""How much is kept of a line of standard error that does not end."""

_JSON_START = re.compile(r"\s*(?:\{\s*\"|\[\s*[{\"])")


class LineSplitter:
    """Splits a byte stream into lines as it arrives; of a long line, the end is kept."""

    def __init__(
        self, on_line: Callable[[str], None], max_bytes: int = MAX_ERROR_LINE_BYTES
    ) -> None:
        self._on_line = on_line
        self._max_bytes = max_bytes
        self._rest = bytearray()

    def add(self, chunk: bytes) -> None:
        """Adds the next chunk."""
        self._rest += chunk
        # Split only at a line end: a line of many megabytes arrives in thousands of chunks.
        if b"\n" in chunk:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                self._on_line(line.decode("utf-8", "replace"))
        del self._rest[: -self._max_bytes]


class Transcript:
    """Standard output of one program run; its attributes are set by `close`."""

    text = ""
    """The whole output; bytes that are not UTF-8 become replacement characters."""
    is_valid_utf8 = True
    is_truncated_json = False
    """Whether it starts as JSON and breaks off; such a document must not pass as text."""

    def __init__(
        self, on_object: Callable[[dict[str, Any]], None], on_line: Callable[[str], None]
    ) -> None:
        """Takes the callbacks for JSON objects and for other lines."""
        self._on_object = on_object
        self._on_line = on_line
        self._lines = LineSplitter(self._read_line, MAX_OUTPUT_BYTES)
        self._output = bytearray()
        self._objects = 0

    def add(self, chunk: bytes) -> None:
        """Adds the next chunk; raises `AgentBadOutput` when the output grows too large."""
        if len(self._output) + len(chunk) > MAX_OUTPUT_BYTES:
            raise AgentBadOutput(
                f"it printed more than {MAX_OUTPUT_BYTES // 1_000_000} MB and was stopped; "
                "ask for less, or check what it repeats"
            )
        self._output += chunk
        self._lines.add(chunk)

    def close(self) -> None:
        """Ends the last line; a single JSON document over many lines is passed on whole."""
        self._lines.add(b"\n")
        self.text = self._output.decode("utf-8", "replace")
        # A replacement character does not encode back to the bytes that it replaced.
        self.is_valid_utf8 = self.text.encode() == self._output
        body = self.text.strip()
        if not _JSON_START.match(body):
            return
        try:
            document, end = json.JSONDecoder().raw_decode(body)
        except ValueError:
            self.is_truncated_json = True
            return
        if not self._objects and end == len(body):
            for part in document if isinstance(document, list) else [document]:
                if isinstance(part, dict):
                    self._on_object(part)

    def _read_line(self, line: str) -> None:
        line = line.strip()
        try:
            data = json.loads(line) if line.startswith("{") else None
        except ValueError:
            data = None
        if data is not None:
            self._objects += 1
            self._on_object(data)
        elif line:
            self._on_line(line)
