"""Renders templates: files with variables, conditions and includes.

`{{KEY}}` is replaced by a value. `{{#if KEY}}...{{/if}}` is kept only if the value is neither
empty nor blank, `{{#unless KEY}}...{{/unless}}` only if it is; both can be nested. `{{include:
path}}` inserts another template. `{{=text}}` prints `{{text}}`. A condition or an include on a
line of its own takes the whole line with it.

Values are inserted and never rendered, whatever they contain. This also holds for a template
that is rendered in two steps: `render_template` leaves the variables in `keep` for `fill`, and
marks everything else that `fill` would take for a tag with one more `=`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from signoff.documents.files import display_path, read_text
from signoff.documents.template_tags import (
    CONDITIONS,
    ENDS,
    NAMED,
    Piece,
    Tag,
    TagKind,
    fillable_pieces,
    mistakes,
    paired_pieces,
    read_pieces,
    tags_of,
)
from signoff.errors import InvalidTemplate, Problem

MOST_INCLUDES = 1000
"""In one template: files that include each other twice double the text with every level."""
DEEPEST_INCLUDE = 50


def render_template(
    path: str | PathLike[str],
    variables: Mapping[str, Any],
    templates_root: str | PathLike[str] | None = None,
    keep: Collection[str] = (),
) -> str:
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
    return _render(pieces, variables, keep, template.problems)


def fill(text: str, values: Mapping[str, Any]) -> str:
    """Fills in the variables that rendering left, and leaves all other text as it is.

    The text may also come from elsewhere: tags that belong to no variable, and conditions that
    are not closed, stay in it.
    """
    return "".join(_evaluate(paired_pieces([*fillable_pieces(text, values)]), values))


def escape(text: str, names: Collection[str]) -> str:
    """Returns a text that `fill` turns back into this one, for values of those names."""
    if not names:
        return text
    pieces = fillable_pieces(text, names)
    return "".join(p if isinstance(p, str) else f"{{{{={p.source[2:]}" for p in pieces)


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
        pieces = [*read_pieces(text, name)]
        self.problems += mistakes(pieces)
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


def _render(
    pieces: Sequence[Piece],
    variables: Mapping[str, Any],
    keep: Collection[str],
    problems: Sequence[Problem],
) -> str:
    found = [*problems, *_unknown_variables(pieces, [*variables, *keep])]
    if found:
        raise InvalidTemplate(dict.fromkeys(found))
    left = [name for name in keep if name not in variables]
    output: list[str] = []
    plain: list[str] = []
    for text in _evaluate(pieces, variables):
        if isinstance(text, _KeptTag):
            # All text before it is joined first: a value and what is next to it can form a tag.
            output += [escape("".join(plain), left), text]
            plain.clear()
        else:
            plain.append(text)
    return "".join([*output, escape("".join(plain), left)])


def _unknown_variables(pieces: Sequence[Piece], known: Sequence[str]) -> Iterator[Problem]:
    remedy = f"valid: {', '.join(sorted(known)) or 'none'}"
    for tag in tags_of(pieces):
        if tag.kind in NAMED and tag.name not in known:
            yield Problem(tag.where, f"unknown variable {tag.name!r}", remedy)


class _KeptTag(str):
    """A tag that is left for later, among the text of an evaluated template."""

    __slots__ = ()


def _evaluate(pieces: Sequence[Piece], variables: Mapping[str, Any]) -> Iterator[str]:
    """Yields the text of a template whose blocks are balanced, with the tags that are left.

    A loop and not a recursion, so blocks can be nested as deep as they like.
    """
    blocks: list[bool | None] = []
    hidden = 0
    for piece in pieces:
        if isinstance(piece, Tag) and piece.kind in CONDITIONS:
            shown = _is_shown(piece, variables)
            if shown is None and not hidden:
                yield _KeptTag(piece.source)
            blocks.append(shown)
            hidden += shown is False
        elif isinstance(piece, Tag) and piece.kind in ENDS:
            shown = blocks.pop()
            hidden -= shown is False
            if shown is None and not hidden:
                yield _KeptTag(piece.source)
        elif not hidden:
            yield _text(piece, variables)


def _is_shown(tag: Tag, variables: Mapping[str, Any]) -> bool | None:
    """Whether the block of a condition is shown; None if its variable has no value yet."""
    if tag.name not in variables:
        return None
    value = variables[tag.name]
    holds = bool(value.strip() if isinstance(value, str) else value)
    return holds == (tag.kind is TagKind.IF)


def _text(piece: Piece, variables: Mapping[str, Any]) -> str:
    if isinstance(piece, str):
        return piece
    if piece.kind is TagKind.LITERAL:
        return f"{{{{{piece.name}}}}}"
    if piece.name not in variables:
        return _KeptTag(piece.source)
    value = variables[piece.name]
    return "" if value is None else str(value)
