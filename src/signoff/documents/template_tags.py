"""The tags of templates: finds them in a text and checks that they belong together."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from signoff.errors import Problem

# No brace and no line break inside, so a long text is searched in one pass.
_BRACES = re.compile(r"\{\{([^{}\n]*+)\}\}")
_CONDITION = re.compile(r"(#if|#unless)[ \t]+(\w+)", re.ASCII)
_INCLUDE = re.compile(r"include[ \t]*:[ \t]*(.*)")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_REST_OF_LINE = re.compile(r"[ \t]*(?:\r?\n|\Z)")
_LIKE_A_TAG = re.compile(r"[#/A-Za-z_]")
_FORMS = (
    "valid: {{KEY}}, {{#if KEY}}...{{/if}}, {{#unless KEY}}...{{/unless}}, {{include: path}}; "
    "put = after the braces to print them"
)


class TagKind(StrEnum):
    """What a tag does."""

    VARIABLE = "variable"
    IF = "#if"
    UNLESS = "#unless"
    END_IF = "/if"
    END_UNLESS = "/unless"
    INCLUDE = "include"
    LITERAL = "literal"
    INVALID = "invalid"


CONDITIONS = {TagKind.IF: TagKind.END_IF, TagKind.UNLESS: TagKind.END_UNLESS}
"""The tags that open a block, and those that close it."""
ENDS = frozenset(CONDITIONS.values())
NAMED = frozenset({TagKind.VARIABLE, *CONDITIONS})
_LINE_TAGS = frozenset({*CONDITIONS, *ENDS, TagKind.INCLUDE})
"""The tags that take their line with them."""


@dataclass(frozen=True)
class Tag:
    """A tag of a template."""

    kind: TagKind
    name: str
    """The variable, the path of an include, or the text of a literal."""
    source: str
    """As it is written."""
    where: str = ""
    """Its file and line."""
    line_break: str = ""
    """The end of its line, if there is nothing else on the line."""


Piece = str | Tag


def read_pieces(text: str, name: str) -> Iterator[Piece]:
    """Yields the text and the tags of a template."""
    end, line, counted = 0, 1, 0
    for match in _BRACES.finditer(text):
        kind, value = _read_tag(match[1])
        if kind is None:
            continue
        line += text.count("\n", counted, match.start())
        counted = match.start()
        start, after = match.span()
        if kind in _LINE_TAGS:
            start, after = _whole_line(text, start, after)
        yield text[end:start]
        line_break = text[match.end() : after].lstrip(" \t")
        yield Tag(kind, value, match[0], f"{name}:{line}", line_break)
        end = after
    yield text[end:]


def _read_tag(body: str) -> tuple[TagKind | None, str]:
    """Returns what the text between two braces means; no kind if it is just text."""
    if body.startswith("="):
        return TagKind.LITERAL, body[1:]
    word = body.strip(" \t")
    if _NAME.fullmatch(word):
        return TagKind.VARIABLE, word
    if word in ENDS:
        return TagKind(word), ""
    if match := _CONDITION.fullmatch(word):
        return TagKind(match[1]), match[2]
    if match := _INCLUDE.fullmatch(word):
        return TagKind.INCLUDE, match[1]
    return (TagKind.INVALID if _LIKE_A_TAG.match(word) else None), word


def _whole_line(text: str, start: int, end: int) -> tuple[int, int]:
    """Returns where the line of a tag begins and ends; the tag's own span if it shares the line."""
    line = text.rfind("\n", 0, start) + 1
    rest = _REST_OF_LINE.match(text, end)
    if rest is None or text[line:start].strip(" \t"):
        return start, end
    return line, rest.end()


def mistakes(pieces: Sequence[Piece]) -> Iterator[Problem]:
    """Yields invalid tags, and blocks that do not begin and end in the same file."""
    opened: list[Tag] = []
    for tag in tags_of(pieces):
        if tag.kind is TagKind.INVALID:
            yield Problem(tag.where, f"unknown tag {tag.source}", _FORMS)
        elif tag.kind in CONDITIONS:
            opened.append(tag)
        elif tag.kind in ENDS:
            if not opened:
                yield Problem(tag.where, f"{tag.source} closes nothing")
            elif CONDITIONS[opened[-1].kind] is not tag.kind:
                inner = opened.pop()
                remedy = f"close {inner.source} of {inner.where} first"
                yield Problem(tag.where, f"{tag.source} is in the wrong place", remedy)
            else:
                opened.pop()
    for tag in opened:
        remedy = f"add {{{{{CONDITIONS[tag.kind].value}}}}}"
        yield Problem(tag.where, f"{tag.source} is not closed", remedy)


def fillable_pieces(text: str, names: Collection[str]) -> Iterator[Piece]:
    """Yields the text and the tags that `fill` acts on, marked ones as literals."""
    end = 0
    for match in _BRACES.finditer(text):
        marked = match[1].startswith("=")
        kind, name = _read_tag(match[1].lstrip("="))
        if not (kind in CONDITIONS or kind in ENDS or (kind in NAMED and name in names)):
            continue
        yield text[end : match.start()]
        if marked:
            yield Tag(TagKind.LITERAL, match[1][1:], match[0])
        else:
            yield Tag(kind, name, match[0])
        end = match.end()
    yield text[end:]


def paired_pieces(pieces: Sequence[Piece]) -> list[Piece]:
    """Returns the pieces with conditions and ends that belong to no block as text."""
    opened: list[int] = []
    loose: set[int] = set()
    for position, piece in enumerate(pieces):
        if isinstance(piece, Tag) and piece.kind in CONDITIONS:
            opened.append(position)
        elif isinstance(piece, Tag) and piece.kind in ENDS:
            start = pieces[opened[-1]] if opened else None
            if isinstance(start, Tag) and CONDITIONS[start.kind] is piece.kind:
                opened.pop()
            else:
                loose.add(position)
    loose.update(opened)
    return [
        piece.source if isinstance(piece, Tag) and position in loose else piece
        for position, piece in enumerate(pieces)
    ]


def tags_of(pieces: Sequence[Piece]) -> Iterator[Tag]:
    """Yields the tags among pieces."""
    return (piece for piece in pieces if isinstance(piece, Tag))
