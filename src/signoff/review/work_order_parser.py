"""The lines of a bill of work, its fenced blocks whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_OPENS = re.compile(r" {0,3}(`{3,}|~{3,})[^`]*")
# What an entry is made of; if it stands inside a block nobody announced, blocks have come apart.
_OURS = re.compile(r"[#*_\s-]*(?:Issue|Find|Replace|Anchor|Insert)[*_]*:", re.IGNORECASE)


@dataclass(frozen=True)
class CodeBlock:
    """A block between two fences, to the letter."""

    text: str


@dataclass(frozen=True)
class WorkOrderLine:
    """A line, or a whole block."""

    text: str = ""
    fenced: CodeBlock | None = None
    broken: bool = False
    """From here on nobody can tell what is inside a block and what is not."""
    number: int = 0
    """Where it begins, counted from 0."""


def read_lines(markdown: str) -> Iterator[WorkOrderLine]:
    """Yields a bill's lines in order; the last one may say that the rest is broken."""
    # Not splitlines: a form feed or a lone carriage return belongs to the text.
    lines = markdown.split("\n")
    at = 0
    announced = False
    while at < len(lines):
        opening = _OPENS.fullmatch(lines[at].rstrip("\r"))
        if opening is None:
            yield WorkOrderLine(lines[at].rstrip("\r"), number=at)
            announced = lines[at].rstrip().rstrip("*_").endswith(":") or (
                announced and not lines[at].strip()
            )
            at += 1
            continue
        end = _end(lines, at + 1, opening.group(1))
        inside = lines[at + 1 : end]
        if end == len(lines) or (not announced and any(map(_OURS.match, inside))):
            yield WorkOrderLine(broken=True, number=at)
            return
        yield WorkOrderLine(fenced=CodeBlock("\n".join(inside)), number=at)
        at, announced = end + 1, False


def _end(lines: list[str], start: int, fence: str) -> int:
    closes = re.compile(rf" {{0,3}}{re.escape(fence[0])}{{{len(fence)},}}[ \t\r]*")
    return next((at for at in range(start, len(lines)) if closes.fullmatch(lines[at])), len(lines))
