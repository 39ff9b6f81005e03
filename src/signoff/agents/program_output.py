"""A program's output: split into lines as it arrives, limited in size, and read as a reply.

Lines that are JSON objects are passed on as they arrive, so their text can be displayed
live. The whole output is kept for programs that print plain text or one JSON document.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from signoff.agents.answer import ModelAnswer
from signoff.errors import AgentBadOutput, AgentError

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


@dataclass(frozen=True)
class ProgramReply(ModelAnswer):
    """A model's answer, with what the program reports about its own run."""

    complete: bool = True
    """Whether the program reported an end; without one its output was cut off."""
    denied: tuple[str, ...] = ()
    """Actions that the program was not allowed to take."""
    fault: AgentError | None = None
    """The error that the program reports."""


class OutputReader:
    """Reads one vendor's JSON; a new one is created for each call.

    This base displays the output and recognizes nothing in it.
    """

    def __init__(self) -> None:
        self.reply = ProgramReply(complete=False)
        """The reply so far."""
        self.recognized = False
        """Whether any of the output was the vendor's JSON."""

    def read_event(self, data: dict[str, Any]) -> str | None:
        """Reads one JSON object as it arrives and returns its text to display, if any.

        An empty text tells that the model begins to answer, and None that there is nothing to tell.

        Raises `AgentError` when there is no point in continuing.
        """
        return f"{json.dumps(data)}\n"

    def read_stderr(self, line: str) -> None:
        """Reads one line of standard error; raises `AgentError` likewise."""

    def update(self, **fields: Any) -> None:
        """Adds fields of a vendor's event to the reply."""
        self.recognized = True
        self.reply = replace(self.reply, **fields)

    def deny(self, action: str) -> None:
        """Adds an action that the program was not allowed to take, unless it is listed already."""
        # Some programs report a denial twice: as an event and on standard error.
        denied = dict.fromkeys((*self.reply.denied, action[:200]))
        self.reply = replace(self.reply, denied=tuple(denied))
