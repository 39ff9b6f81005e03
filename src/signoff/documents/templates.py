"""Renders the templates of prompts: texts with variables, conditions and includes.

`{{KEY}}` is replaced by a value. `{{#if KEY}}...{{/if}}` is kept only if the value is neither
empty nor blank, `{{#unless KEY}}...{{/unless}}` only if it is; both can be nested. `{{include:
path}}` inserts another template. `{{! text }}` is a comment. `{{=text}}` prints `{{text}}`. All
of them but values take their line with them if there is nothing else on it.

Values are inserted and never rendered, whatever they contain. This also holds for a template
whose last values are known later: it is read once, and what is left of it are its pieces, not a
text that would have to be read again.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from os import PathLike
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from signoff.core.errors import InvalidTemplate, Problem
from signoff.documents.files import display_path, read_text

MOST_INCLUDES = 1000
"""In one template: files that include each other twice double the text with every level."""
DEEPEST_INCLUDE = 50
# No brace and no line break inside, so a long text is searched in one pass.
_BRACES = re.compile(r"\{\{([^{}\n]*+)\}\}")
_CONDITION = re.compile(r"(#if|#unless)[ \t]+(\w+)", re.ASCII)
_INCLUDE = re.compile(r"include[ \t]*:[ \t]*(.*)")
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_VARIABLE = re.compile(r"\{\{[ \t]*([A-Za-z_]\w*)[ \t]*\}\}", re.ASCII)
_REST_OF_LINE = re.compile(r"[ \t]*(?:\r?\n|\Z)")
# Templates of other programs use more forms; reading them as text would put them into a prompt.
_LIKE_A_TAG = re.compile(r"[#^/A-Za-z_]")
_FORMS = (
    "valid: {{KEY}}, {{#if KEY}}...{{/if}}, {{#unless KEY}}...{{/unless}}, {{include: path}}, "
    "{{! text }}; put = after the braces to print them"
)


class TagKind(StrEnum):
    """What a tag does."""

    VARIABLE = "variable"
    IF = "#if"
    UNLESS = "#unless"
    END_IF = "/if"
    END_UNLESS = "/unless"
    INCLUDE = "include"
    COMMENT = "comment"
    LITERAL = "literal"
    INVALID = "invalid"


_CONDITIONS = {TagKind.IF: TagKind.END_IF, TagKind.UNLESS: TagKind.END_UNLESS}
"""The tags that open a block, and those that close it."""
_ENDS = frozenset(_CONDITIONS.values())
_NAMED = frozenset({TagKind.VARIABLE, *_CONDITIONS})
_LINE_TAGS = frozenset({*_CONDITIONS, *_ENDS, TagKind.INCLUDE, TagKind.COMMENT})
"""The tags that take their line with them."""


@dataclass(frozen=True)
class Tag:
    """A tag of a template."""

    kind: TagKind
    name: str
    """The variable, the path of an include, or the text of a literal or a comment."""
    source: str
    """As it is written."""
    where: str = ""
    """Its file and line."""
    line_break: str = ""
    """The end of its line, if there is nothing else on the line."""


Piece = str | Tag


def render_template(
    path: str | PathLike[str],
    variables: Mapping[str, Any],
    templates_root: str | PathLike[str] | None = None,
    keep: Collection[str] = (),
) -> OpenPrompt:
    """Returns a template file with its variables filled in; raises `InvalidTemplate`.

    A relative path, and those of includes, start at `templates_root`; without one, those of
    includes start at the including file. Nothing outside the root, by default the folder of
    the template, can be included. Variables in `keep` stay for `fill`; any other variable
    without a value is an error, even in a block that is left out. None is inserted as nothing.
    """
    file = Path(templates_root or "", path)
    root = Path(templates_root) if templates_root is not None else file.parent
    template = _Template(root.resolve(), start_at_root=templates_root is not None)
    pieces = template.load(file)
    problems = [*template.problems, *_unknown_variables(pieces, [*variables, *keep])]
    if problems:
        raise InvalidTemplate(dict.fromkeys(problems))
    return OpenPrompt.of(_evaluate(pieces, variables))


def render_text(template: str, values: Mapping[str, Any]) -> str:
    """Returns a template without mistakes and without includes, with its values filled in."""
    return OpenPrompt.of(_evaluate(_pieces_of(template), values))


def mistakes_in(template: str, name: str, known: Collection[str]) -> list[Problem]:
    """Returns what is wrong with a template that may use the variables in `known`."""
    pieces = [*_read_pieces(template, name)]
    includes = (tag for tag in _tags_of(pieces) if tag.kind is TagKind.INCLUDE)
    refused = [
        Problem(tag.where, f"{tag.source} has no effect here", "insert its text")
        for tag in includes
    ]
    return [*_mistakes(pieces), *refused, *_unknown_variables(pieces, known)]


def variables_of(template: str, *, printed: bool = False) -> set[str]:
    """Returns the variables of a template, or only those that are printed and not just tested."""
    kinds = {TagKind.VARIABLE} if printed else _NAMED
    return {tag.name for tag in _tags_of(_pieces_of(template)) if tag.kind in kinds}


class OpenPrompt(str):
    """A text of a template in which some variables have no value yet; it shows their tags.

    It can be joined to other texts with `+`. Any other change makes a plain text of it, in which
    inserted values cannot be told from tags any more.
    """

    __slots__ = ("pieces",)

    pieces: tuple[Piece, ...]
    """The text between the tags, which is never read again, and the tags."""

    @classmethod
    def of(cls, pieces: Iterable[Piece]) -> OpenPrompt:
        """Returns the text of some pieces."""
        kept = tuple(pieces)
        prompt = cls("".join(p if isinstance(p, str) else p.source for p in kept))
        prompt.pieces = kept
        return prompt

    def __add__(self, other: str) -> OpenPrompt:
        """Returns it with a text after it."""
        return OpenPrompt.of([*self.pieces, *getattr(other, "pieces", [str(other)])])

    def __radd__(self, other: str) -> OpenPrompt:
        """Returns it with a text before it."""
        return OpenPrompt.of([other, *self.pieces])


def fill(text: str, values: Mapping[str, Any]) -> str:
    """Returns a text with its variables filled in; a plain one keeps all other tags."""
    if isinstance(text, OpenPrompt):
        return "".join(map(str, _evaluate(text.pieces, values)))
    # In one pass, so a value that looks like a tag stays as it is.
    return _VARIABLE.sub(lambda tag: str(values.get(tag[1], tag[0])), text)


class _Template:
    """Loads a template and its includes, and collects their problems."""

    def __init__(self, root: Path, *, start_at_root: bool) -> None:
        self.problems: list[Problem] = []
        self._root = root
        self._start_at_root = start_at_root
        self._includes = 0

    def load(self, file: Path) -> list[Piece]:
        """Returns the pieces of a file."""
        name = display_path(file)
        text = read_text(file, self.problems, name=name)
        return self._expand(text, name, (file,)) if text is not None else []

    def _expand(self, text: str, name: str, files: Sequence[Path]) -> list[Piece]:
        """Returns the pieces of a text, with those of its includes in their places.

        `files` lead to the text: each of them includes the next one.
        """
        pieces = [*_read_pieces(text, name)]
        self.problems += _mistakes(pieces)
        expanded: list[Piece] = []
        for piece in pieces:
            if isinstance(piece, Tag) and piece.kind is TagKind.INCLUDE:
                expanded += self._include(piece, files)
            else:
                expanded.append(piece)
        return expanded

    def _include(self, tag: Tag, files: Sequence[Path]) -> list[Piece]:
        self._includes += 1
        file, problem = self._find(tag.name, files)
        if file is None:
            self.problems.append(Problem(tag.where, f"cannot include {tag.name!r}: {problem}"))
            return []
        name = display_path(file)
        text = read_text(file, self.problems, name=f"{tag.where}: cannot include {name}")
        if not text:
            return []
        # The included text ends where the line of its tag ends.
        text = text.removesuffix("\n").removesuffix("\r") + tag.line_break
        return self._expand(text, name, (*files, file))

    def _find(self, path: str, files: Sequence[Path]) -> tuple[Path | None, str]:
        """Returns the file of an include, or why there is none."""
        if not path or PurePosixPath(path).is_absolute() or PureWindowsPath(path).anchor:
            return None, "write a relative path"
        try:
            file = Path(self._root if self._start_at_root else files[-1].parent, path).resolve()
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a null character
            return None, str(error)
        if not file.is_relative_to(self._root):
            return None, f"it is outside {display_path(self._root)}"
        chain = [each.resolve() for each in files]
        if file in chain:
            cycle = [*chain[chain.index(file) :], file]
            return None, f"it includes itself: {' -> '.join(each.name for each in cycle)}"
        if self._includes > MOST_INCLUDES or len(files) > DEEPEST_INCLUDE:
            return None, f"more than {MOST_INCLUDES} includes, or {DEEPEST_INCLUDE} levels of them"
        return file, ""


def _unknown_variables(pieces: Sequence[Piece], known: Collection[str]) -> Iterator[Problem]:
    valid = f"valid: {', '.join(sorted(known)) or 'none'}"
    for tag in _tags_of(pieces):
        if tag.kind in _NAMED and tag.name not in known:
            yield Problem(tag.where, f"unknown variable {tag.name!r}", valid)


def _evaluate(pieces: Sequence[Piece], variables: Mapping[str, Any]) -> Iterator[Piece]:
    """Yields the text of a template whose blocks are balanced, and the tags that are left.

    A loop and not a recursion, so blocks can be nested as deep as they like.
    """
    blocks: list[bool | None] = []
    hidden = 0
    for piece in pieces:
        if isinstance(piece, Tag) and piece.kind in _CONDITIONS:
            shown = _is_shown(piece, variables)
            if shown is None and not hidden:
                yield piece
            blocks.append(shown)
            hidden += shown is False
        elif isinstance(piece, Tag) and piece.kind in _ENDS:
            shown = blocks.pop()
            hidden -= shown is False
            if shown is None and not hidden:
                yield piece
        elif not hidden:
            yield _value(piece, variables)


def _is_shown(tag: Tag, variables: Mapping[str, Any]) -> bool | None:
    """Whether the block of a condition is shown; None if its variable has no value yet."""
    if tag.name not in variables:
        return None
    value = variables[tag.name]
    holds = bool(value.strip() if isinstance(value, str) else value)
    return holds == (tag.kind is TagKind.IF)


def _value(piece: Piece, variables: Mapping[str, Any]) -> Piece:
    if isinstance(piece, str):
        return piece
    if piece.kind is TagKind.COMMENT:
        return ""
    if piece.kind is TagKind.LITERAL:
        return f"{{{{{piece.name}}}}}"
    if piece.name not in variables:
        return piece
    value = variables[piece.name]
    return "" if value is None else str(value)


# All critics of a step have the same template, and long prompts have many pieces.
@lru_cache(maxsize=32)
def _pieces_of(template: str) -> tuple[Piece, ...]:
    return tuple(_read_pieces(template, ""))


def _read_pieces(text: str, name: str) -> Iterator[Piece]:
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
    if body.startswith("!"):
        return TagKind.COMMENT, body[1:]
    word = body.strip(" \t")
    if _NAME.fullmatch(word):
        return TagKind.VARIABLE, word
    if word in _ENDS:
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


def _mistakes(pieces: Sequence[Piece]) -> Iterator[Problem]:
    """Yields invalid tags, and blocks that do not begin and end in the same file."""
    opened: list[Tag] = []
    for tag in _tags_of(pieces):
        if tag.kind is TagKind.INVALID:
            yield Problem(tag.where, f"unknown tag {tag.source}", _FORMS)
        elif tag.kind in _CONDITIONS:
            opened.append(tag)
        elif tag.kind in _ENDS:
            if not opened:
                yield Problem(tag.where, f"{tag.source} closes nothing")
            elif _CONDITIONS[opened[-1].kind] is not tag.kind:
                inner = opened.pop()
                remedy = f"close {inner.source} of {inner.where} first"
                yield Problem(tag.where, f"{tag.source} is in the wrong place", remedy)
            else:
                opened.pop()
    for tag in opened:
        remedy = f"add {{{{{_CONDITIONS[tag.kind].value}}}}}"
        yield Problem(tag.where, f"{tag.source} is not closed", remedy)


def _tags_of(pieces: Sequence[Piece]) -> Iterator[Tag]:
    """Yields the tags among pieces."""
    return (piece for piece in pieces if isinstance(piece, Tag))
