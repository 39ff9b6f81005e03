"""Reads documentation pages as what they promise: sections with blocks that can be run.

A section begins at a heading of the second level and is tried in a folder of its own:

- `python` and `yaml` that begin with a comment naming a file (`# flow.py`) become that file;
- other `python` is run, and a `text` block right after it is what it prints;
- `sh` is run as a script that has to end well;
- `console` is a session: lines after `$ ` are typed, the others are seen, in this order.

In what is seen, `...` stands for anything, and lines may be left out. A block that must not
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
KNOWN = RUN | {"", "text", "yaml", "json"}
"""Any other language is a slip of the pen, and its block would never be tried."""


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    language: str
    text: str
    line: int
    """Where it begins in its page, for whoever has to mend it."""
    not_run: str = ""
    """Why it must not be run; empty when it is."""
    prints: str = ""
    """What stands in a `text` block right after it."""

    @property
    def file(self) -> str:
        """The file it becomes, if it does."""
        named = _FILE.match(self.text.partition("\n")[0])
        return named[1] if named and self.language in ("python", "yaml") else ""


@dataclass
class Section:
    """A heading and the blocks under it."""

    page: Path
    title: str
    blocks: list[Block] = field(default_factory=list)

    @property
    def can_be_tried(self) -> bool:
        """Whether there is anything to run in it."""
        return any(block.language in RUN and not block.not_run for block in self.blocks)

    def __str__(self) -> str:
        """Names a test."""
        return f"{self.page.name}: {self.title}"


def sections(page: Path) -> list[Section]:
    """Returns a page's sections, in order."""
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
    """Yields where a page's links lead; code is no link."""
    yield from _LINK.findall(_CODE.sub("", page.read_text("utf-8")))


def anchors(page: Path) -> set[str]:
    """Returns what can stand after `#` in a link to a page, as forges make it of headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.strip().lower()).replace(" ", "-") for h in headings}


def typed(session: str) -> Iterator[tuple[str, list[str]]]:
    """Yields every command of a console block with the lines that are seen after it."""
    command, seen = "", list[str]()
    for line in session.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, seen
            command, seen = line.removeprefix("$ "), []
        elif line.startswith("> ") and not seen:
            command += "\n" + line.removeprefix("> ")
        else:
            seen.append(line)
    if command:
        yield command, seen


def missing(seen: list[str], output: str) -> str | None:
    """Returns the first line that should be in the output, after those before it, and is not."""
    rest = iter(output.splitlines())
    for wanted in (line.strip() for line in seen):
        if wanted in ("", "..."):
            continue
        pattern = re.compile(".*?".join(map(re.escape, wanted.split("..."))))
        if not any(pattern.fullmatch(line.strip()) for line in rest):
            return wanted
    return None
