"""Parses documentation pages into sections with code blocks that can be run.

A section starts at a second-level heading and is tested in a folder of its own:

- `python` and `yaml` that start with a comment naming a file (`# flow.py`) are written to it;
- other `python` is run, and a `text` block right after it is its expected output;
- `sh` is run as a script that has to succeed;
- `console` is a session: lines after `$ ` are commands, the others are expected output.

In expected output, `...` matches anything, and lines may be left out. A block that must not
be run has `<!-- not run: reason -->` above it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

_FENCE = re.compile(r"^```(\w*)\s*$")
_NOT_RUN = re.compile(r"^<!-- not run: (.+) -->$")
_FILE = re.compile(r"^# (\S+\.(?:py|yaml))$")
_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```.*?^```|`[^`\n]+`", re.DOTALL | re.MULTILINE)

RUN = frozenset({"python", "sh", "console"})
KNOWN = RUN | {"", "text", "yaml", "json", "mermaid"}
"""Any other language is a typing error, and its block would never be tested."""


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    language: str
    text: str
    line: int
    """Its line number in the page."""
    not_run: str = ""
    """Why it must not be run; empty if it is run."""
    prints: str = ""
    """Its expected output: the `text` block right after it."""

    @property
    def file(self) -> str:
        """The file that it is written to, if any."""
        named = _FILE.match(self.text.partition("\n")[0])
        return named[1] if named and self.language in ("python", "yaml") else ""


@dataclass
class Section:
    """A heading and the blocks under it."""

    page: Path
    title: str
    blocks: list[Block] = field(default_factory=list)

    @property
    def is_runnable(self) -> bool:
        """Whether it has a block to run."""
        return any(block.language in RUN and not block.not_run for block in self.blocks)

    def __str__(self) -> str:
        """Returns the id of its test."""
        return f"{self.page.name}: {self.title}"


def sections(page: Path) -> list[Section]:
    """Returns the sections of a page, in order."""
    found = [Section(page, "beginning")]
    lines = page.read_text("utf-8").splitlines()
    position, not_run = 0, ""
    while position < len(lines):
        line = lines[position]
        if line.startswith("## "):
            found.append(Section(page, line.removeprefix("## ").strip()))
        if fence := _FENCE.match(line):
            end = lines.index("```", position + 1)
            text = "\n".join(lines[position + 1 : end]) + "\n"
            blocks = found[-1].blocks
            if fence[1] == "text" and blocks and blocks[-1].language == "python":
                blocks[-1] = replace(blocks[-1], prints=text)
            blocks.append(Block(fence[1], text, position + 1, not_run))
            position = end
        if line.strip():
            reason = _NOT_RUN.match(line)
            not_run = reason[1] if reason else ""
        position += 1
    return found


def links(page: Path) -> Iterator[str]:
    """Yields the targets of a page's links, except those in code."""
    yield from _LINK.findall(_CODE.sub("", page.read_text("utf-8")))


def anchors(page: Path) -> set[str]:
    """Returns the anchors of a page, made from its headings as code hosts do."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.strip().lower()).replace(" ", "-") for h in headings}


def typed(session: str) -> Iterator[tuple[str, list[str]]]:
    """Yields every command of a console block with its expected output."""
    command, expected = "", list[str]()
    for line in session.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, expected
            command, expected = line.removeprefix("$ "), []
        elif line.startswith("> ") and not expected:
            command += "\n" + line.removeprefix("> ")
        else:
            expected.append(line)
    if command:
        yield command, expected


def missing(expected: list[str], output: str) -> str | None:
    """Returns the first expected line that is not in the output, in this order."""
    rest = iter(output.splitlines())
    for wanted in (line.strip() for line in expected):
        if wanted in ("", "..."):
            continue
        pattern = re.compile(".*?".join(map(re.escape, wanted.split("..."))))
        if not any(pattern.fullmatch(line.strip()) for line in rest):
            return wanted
    return None
