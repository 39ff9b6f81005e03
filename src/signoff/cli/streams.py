"""Streamed answers for humans: the tail of a sentence, never JSON and never single words."""

from __future__ import annotations

from signoff.cli.text import one_line

KEPT = 600
"""Characters of an answer that are kept; more would not fit a line."""
_DATA = ("{", "[", "```", "<")
"""What answers for programs begin with."""


class StreamTail:
    """Collects the pieces of one answer."""

    def __init__(self) -> None:
        self.size = 0
        """Characters so far."""
        self._start = ""
        self._tail = ""
        self._line = ""

    def add(self, text: str) -> list[str]:
        """Adds a piece; returns the lines that are complete now."""
        self.size += len(text)
        self._start = (self._start + text).lstrip()[:3]
        self._tail = (self._tail + text)[-KEPT:]
        *lines, self._line = (self._line + text).split("\n")
        self._line = self._line[-KEPT:]
        return [] if self.is_data else [line for line in lines if line.strip()]

    def rest(self) -> list[str]:
        """Returns the line that the answer ended in, once it is complete."""
        return [] if self.is_data or not self._line.strip() else [self._line]

    @property
    def is_data(self) -> bool:
        """Whether the answer is for programs, such as JSON."""
        return self._start.startswith(_DATA)

    def shown(self, width: int) -> str:
        """Returns the end of the answer in one line, from the beginning of a word on."""
        if self.is_data:
            return f"writing its answer, {self.size:,} characters so far"
        text = one_line(self._tail)
        if len(text) <= width:
            return text
        words = text[-(width - 2) :].partition(" ")[2]
        return f"… {words or text[-(width - 2) :]}"
