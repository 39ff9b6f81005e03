"""Splits a work order into lines and whole code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_OPENS = re.compile(r" {0,3}(`{3,}|~{3,})[^`]*")
# Labels of an entry. If one is inside a block that no label announced, a fence is missing or
# extra, and text and blocks can no longer be told apart.
_LABELS = re.compile(r"[#*_\s-]*(?:Issue|Find|Replace|Anchor|Insert)[*_]*:", re.IGNORECASE)


@dataclass(frozen=True)
class CodeBlock:
    """The exact text between two fences."""

    text: str


@dataclass(frozen=True)
class WorkOrderLine:
    """A line, or a whole code block."""

    text: str = ""
    fenced: CodeBlock | None = None
    broken: bool = False
    """From here on it is uncertain which lines are inside a block."""
    number: int = 0
    """The number of its first line, from 0."""


def read_lines(markdown: str) -> Iterator[WorkOrderLine]:
    """Yields the lines of a work order; the last one may mark the rest as broken."""
    # `splitlines` would also split at a form feed or a lone carriage return inside a text.
    lines = markdown.split("\n")
    index = 0
    announced = False
    while index < len(lines):
        opening = _OPENS.fullmatch(lines[index].rstrip("\r"))
        if opening is None:
            yield WorkOrderLine(lines[index].rstrip("\r"), number=index)
            announced = lines[index].rstrip().rstrip("*_").endswith(":") or (
                announced and not lines[index].strip()
            )
            index += 1
            continue
        end = _find_end(lines, index + 1, opening.group(1))
        inside = lines[index + 1 : end]
        if end == len(lines) or (not announced and any(map(_LABELS.match, inside))):
            yield WorkOrderLine(broken=True, number=index)
            return
        yield WorkOrderLine(fenced=CodeBlock("\n".join(inside)), number=index)
        index, announced = end + 1, False


def _find_end(lines: list[str], start: int, fence: str) -> int:
    closes = re.compile(rf" {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t\r]*")
    return next((n for n in range(start, len(lines)) if closes.fullmatch(lines[n])), len(lines))
