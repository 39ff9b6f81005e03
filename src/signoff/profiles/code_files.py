"""Finds the files in a reply, and writes files the way they are found.

A file is a line that names it, then a fenced block with its content:

    ### src/shop/price.py
    ```python
    TAX = 0.19
    ```

The name may be in a heading, in bold, in backticks, after `File:` or in the block's info string.
Fences follow CommonMark: a block ends at a fence of the same character that is at least as long,
so a file that contains fences needs a longer one around it.

Losing a file, or the end of one, is worse than asking again. A block that names no file is
therefore an error, unless its info string says that it shows a command or its output.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

MOST_BLOCKS = 2_000
"""Fenced blocks in a reply; no prompt asks for nearly as many."""

_LONGEST_LINE = 500
"""Characters of a line or an info string that may name a file."""
_COMMENTARY = frozenset("bash console diff log output sh shell shell-session text txt zsh".split())
"""Info strings of blocks that explain something and need no file name."""
_WRAPPERS = frozenset(["", "markdown", "md"])
"""Info strings of a block that may enclose a whole reply."""
_LANGUAGES = {
    "": "text",
    "js": "javascript",
    "md": "markdown",
    "py": "python",
    "ts": "typescript",
    "yml": "yaml",
}
"""Info strings by file suffix, where the suffix itself is not the usual one."""

# Possessive quantifiers: nothing here is tried a second time, so 5 MB of fences take no longer
# than 5 MB of anything else.
_OPENING = re.compile(
    r"^(?P<indent>[ \t]{0,12}+)(?P<fence>`{3,}+(?=[^`\n]*+$)|~{3,}+)(?P<info>[^\n]*+)$",
    re.MULTILINE,
)
_MARKERS = re.compile(r"^(?:#{1,6}[ \t]+|[-*+][ \t]+|\d{1,4}[.)][ \t]+)*")
_LABEL = re.compile(r"^(?:file|filename|file name|path)[ \t]*\d{0,4}[ \t]*:[ \t]*", re.IGNORECASE)
_QUOTED = re.compile(r"`+([^`]+)`+(?:[ \t]*[(:,\u2013\u2014-].*)?")
_PLAIN = re.compile(r"(\S+)(?:[ \t]+\([^)]*\))?")
_SUFFIX = re.compile(r"\.[A-Za-z]\w*$")
_ATTRIBUTE = re.compile(r"\b(?:file|filename|path|title)=(?:\"([^\"]+)\"|'([^']+)'|(\S+))")
_BARE_NAMES = frozenset(["Dockerfile", "Jenkinsfile", "LICENSE", "Makefile", "Procfile"])


def find_code_files(reply: str) -> dict[str, str]:
    """Returns the files of a reply, by path and in order; raises `ValueError`.

    Paths are returned as the reply has them, with slashes: they may be hostile, and are checked
    before anything is written.
    """
    text = reply.replace("\r\n", "\n")
    blocks = list(_blocks(text))
    # Some models put their whole answer into one block. The files are inside it then, and its own
    # fence names none.
    inside = _enclosed_reply(text, blocks)
    if inside is not None:
        blocks = list(_blocks(inside, first_line=2))
    files: dict[str, str] = {}
    for block, name in _named(blocks):
        path = name.replace("\\", "/")
        if path in files:
            raise ValueError(f"line {block.line}: the file {path!r} appears twice")
        files[path] = block.content
    if not files:
        raise ValueError(
            "the reply contains no file; each file is a line with its path, then a fenced block"
        )
    return files


def format_code_files(files: Mapping[str, str]) -> str:
    """Returns files as a text in which `find_code_files` finds them again.

    Every file ends with a line break then, whether or not it had one.
    """
    return "\n".join(
        f"### {path}\n{fenced(content, language(path))}" for path, content in files.items()
    )


def fenced(text: str, info: str = "") -> str:
    """Returns a text as a fenced block; no line of the text can close it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    end = "" if text.endswith("\n") or not text else "\n"
    return f"{fence}{info}\n{text}{end}{fence}\n"


def language(path: str) -> str:
    """Returns the usual info string for a file."""
    suffix = PurePosixPath(path).suffix.lstrip(".").lower()
    return _LANGUAGES.get(suffix, suffix)


@dataclass(frozen=True)
class FencedBlock:
    """A fenced block of a reply, and what is before it."""

    before: str
    """The text between the previous block and this one."""
    info: str
    content: str
    line: int
    """The line of the opening fence; 1 is the first."""


def _blocks(text: str, first_line: int = 1) -> Iterator[FencedBlock]:
    position, counted, line = 0, 0, first_line
    for _ in range(MOST_BLOCKS):
        opening = _OPENING.search(text, position)
        if opening is None:
            return
        line += text.count("\n", counted, opening.start())
        counted = opening.start()
        content, end = _content(text, opening, line)
        before = text[position : opening.start()]
        yield FencedBlock(before, opening["info"].strip(), content, line)
        position = end
    raise ValueError(f"the reply contains {MOST_BLOCKS:,} or more fenced blocks")


def _content(text: str, opening: re.Match[str], line: int) -> tuple[str, int]:
    """Returns the content of a block and where its closing fence ends."""
    indent, fence = opening["indent"], opening["fence"]
    start = min(opening.end() + 1, len(text))
    found = _same_fence(indent, fence).search(text, start)
    if found is None:
        raise ValueError(f"line {line}: this fenced block is never closed")
    # A fence with a language opens a block. Inside another block of the same length, a reader
    # cannot tell which one is meant, and guessing could cut a file in half.
    if found["info"].strip():
        inner = line + text.count("\n", opening.start(), found.start())
        raise ValueError(
            f"line {inner}: a fenced block opens inside the block of line {line}; the outer one "
            "needs a longer fence"
        )
    content = text[start : found.start()]
    if indent:
        content = re.sub(rf"^[ \t]{{0,{len(indent)}}}+", "", content, flags=re.MULTILINE)
    return content, found.end()


def _same_fence(indent: str, fence: str) -> re.Pattern[str]:
    """Matches a fence that closes a block, or that a reader could take for one of another."""
    # Four columns deeper than the opening fence, it is part of the content: a docstring, say.
    margin = rf"(?: {{0,{len(indent) + 3}}}|{re.escape(indent)})"
    info = r"[^`\n]*+" if fence[0] == "`" else r"[^\n]*+"
    return re.compile(rf"^{margin}{fence[0]}{{{len(fence)},}}+(?P<info>{info})$", re.MULTILINE)


def _enclosed_reply(text: str, blocks: list[FencedBlock]) -> str | None:
    """Returns what is inside the one block that encloses a whole reply, if there is one."""
    if len(blocks) != 1 or blocks[0].info.lower() not in _WRAPPERS:
        return None
    (block,) = blocks
    closing = text.rstrip().rpartition("\n")[2].strip()
    alone = not block.before.strip() and not closing.strip("`~")
    return block.content if alone and _OPENING.search(block.content) else None


def _named(blocks: list[FencedBlock]) -> Iterator[tuple[FencedBlock, str]]:
    heading = ""
    for block in blocks:
        heading = _last_heading(block.before, heading)
        name = _path_in_info(block.info) or _path_in_line(block.before.rstrip().rpartition("\n")[2])
        commentary = block.info.lower() in _COMMENTARY
        if not name and not commentary:
            name = _path_in_line(heading)
        if name:
            # A heading names one block: a second one below it would overwrite the first.
            heading = ""
            yield block, name
        elif not commentary:
            raise ValueError(
                f"line {block.line}: this fenced block names no file; put a line with the file's "
                "path before it (if it continues the file above, that file's fence is too short)"
            )


def _last_heading(text: str, otherwise: str) -> str:
    start = f"\n{text}".rfind("\n#")
    return otherwise if start < 0 else text[start:].partition("\n")[0]


def _path_in_info(info: str) -> str:
    if len(info) > _LONGEST_LINE:
        return ""
    attribute = _ATTRIBUTE.search(info)
    if attribute:
        return str(next(filter(None, attribute.groups())))
    words = (word.partition(":")[2] or word for word in info.split())
    return next((word for word in words if _looks_like_path(word)), "")


def _path_in_line(line: str) -> str:
    """Returns the path that a line consists of, apart from markup and a remark; "" if none."""
    if len(line) > _LONGEST_LINE:
        return ""
    text = _MARKERS.sub("", line.strip()).replace("**", "").strip()
    label = _LABEL.match(text)
    text = text[label.end() :] if label else text
    text = text.strip().removesuffix(":").rstrip()
    form = _QUOTED if text.startswith("`") else _PLAIN
    found = form.fullmatch(text)
    path = found[1].strip() if found else text
    # After a label, a path may contain spaces; elsewhere the line would be a sentence.
    return path if _looks_like_path(path.replace(" ", "") if label else path) else ""


def _looks_like_path(word: str) -> bool:
    if not word or any(c.isspace() or c in "{}<>" for c in word):
        return False
    return "/" in word or "\\" in word or word in _BARE_NAMES or bool(_SUFFIX.search(word))
