"""Parses YAML into plain values and remembers the line of every value.

The result contains only dicts with string keys, lists, strings, numbers, booleans and None.
A text that is not YAML, or whose aliases expand into an enormous document, becomes a problem
and never an exception.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.scalarbool import ScalarBoolean

from signoff._version import __version__
from signoff.core.errors import Problem

Path = tuple[str | int, ...]
"""The keys and list positions that lead to a value."""

MOST_VALUES = 100_000
"""The most values that aliases may expand to, or a short file could fill the memory.

A longer file may have as many values as characters: without aliases, none has more.
"""
DEEPEST = 50
_PARSER_BUGS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What ruamel.yaml raises for odd texts: a date such as 2024-99-99, a mapping as a key."""
_HINTS = {
    "'\\t'": "indent with spaces, not tabs",
    "mapping values are not": "put a text that contains ': ' in quotes, or fix the indentation",
    "found '<scalar>'": "put the whole text in quotes, or indent this line like its neighbors",
    "expected <block end>": "this line is not indented like its neighbors",
    "could not find expected ':'": "write `key: value`, or indent this line below its key",
    "cannot start any token": "put the text in quotes",
    "end of stream": "a quote is opened and never closed",
    "expected ',' or": "a bracket is not closed, or a text inside needs quotes",
}
"""Remedies by a part of the parser's message; the first match counts."""
MOST_BITS = 4096
"""The longest integer; Python refuses to print one about four times as long."""
_TOO_DEEP = f"is nested more than {DEEPEST} deep"


@dataclass(frozen=True)
class Document:
    """A file's content as plain values."""

    name: str
    content: Any
    _node: Any = field(default=None, repr=False, compare=False)

    def at(self, path: Path) -> str:
        """Returns `file:line` of a value, or of its innermost existing parent."""
        return f"{self.name}:{self.line(path)}"

    def line(self, path: Path) -> int:
        """Returns the line of a value, counted from 1."""
        node, number = self._node, 0
        for part in path:
            key = _own_key(node, part)
            position = (node.lc.data or {}).get(key) if key is not None else None
            if position is None:
                break
            number = position[0]
            node = node[key]
        return int(number) + 1


def read_yaml(text: str, name: str, problems: list[Problem]) -> Document | None:
    """Returns the parsed text; None after adding a problem if it cannot be parsed."""
    try:
        node = _parse(text)
        return Document(name, _plain(node, iter(range(max(MOST_VALUES, len(text))))), node)
    except _UnusableError as error:
        problems.append(Problem(name, str(error)))
    except RecursionError:
        problems.append(Problem(name, _TOO_DEEP))
    except YAMLError as error:
        problems.append(_syntax_problem(error, name))
    except _PARSER_BUGS as error:
        problems.append(Problem(name, f"is not YAML: {error}"))
    return None


def read_mapping(text: str, name: str, problems: list[Problem], what: str) -> Document | None:
    """Parses a text that must be a non-empty mapping; `what` names its entries in messages."""
    document = read_yaml(text, name, problems)
    return as_mapping(document, problems, what) if document is not None else None


def as_mapping(document: Document, problems: list[Problem], what: str) -> Document | None:
    """Returns the document if it contains a mapping; None after adding a problem if not."""
    if isinstance(document.content, dict):
        return document
    empty = document.content is None
    message = "is empty" if empty else f"is not a list of `key: value` {what}"
    problems.append(Problem(f"{document.name}:1", message))
    return None


def newer_version(document: Document, newest: int) -> Problem | None:
    """Returns the problem with a file in a version newer than this program can read."""
    version = document.content.get("version", newest)
    if not isinstance(version, int) or isinstance(version, bool) or version <= newest:
        return None
    return Problem(
        document.at(("version",)),
        f"version {version} is newer than signoff {__version__} can read ({newest})",
        f"upgrade signoff, or write the file for version {newest}",
    )


def _parse(text: str) -> Any:
    with warnings.catch_warnings():
        # ruamel.yaml warns about an anchor used twice on standard error, outside any report.
        warnings.simplefilter("ignore")
        reader = YAML(typ="rt")
        # Deep nesting makes the scanner slow long before the stack is exhausted.
        reader.max_depth = DEEPEST + 1
        return reader.load(StringIO(text))


def _own_key(node: Any, part: str | int) -> Any:
    if isinstance(node, CommentedSeq):
        return int(part) if str(part).isdigit() and int(part) < len(node) else None
    if not isinstance(node, CommentedMap):
        return None
    if part in node:
        return part
    # Some keys are case-insensitive, so their lines are found in any case too.
    lowered = str(part).lower()
    return next((key for key in node if str(key).strip().lower() == lowered), None)


class _UnusableError(Exception):
    """A document is too large, too deep or has no plain form; the message says why."""


def _plain(node: Any, left: Iterator[int], depth: int = 0) -> Any:
    """Converts ruamel.yaml's own types to plain ones; `left` has an item for each value allowed."""
    if next(left, None) is None:
        raise _UnusableError("has too many values after its aliases are expanded")
    if depth > DEEPEST:
        raise _UnusableError(_TOO_DEEP)
    if isinstance(node, Mapping):
        return {_key(key): _plain(value, left, depth + 1) for key, value in node.items()}
    if isinstance(node, list):
        return [_plain(value, left, depth + 1) for value in node]
    return _scalar(node)


def _key(key: Any) -> str:
    if isinstance(key, Mapping | tuple | list):
        raise _UnusableError("has a list or a mapping where a key should be")
    return str(key)


def _scalar(node: Any) -> Any:
    if isinstance(node, ScalarBoolean):
        return bool(node)
    if isinstance(node, int) and node.bit_length() > MOST_BITS:
        raise _UnusableError(f"has a number of more than {MOST_BITS} bits; put it in quotes")
    # `bool` comes before `int`, of which it is a subclass.
    for kind in (bool, int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return node


def _syntax_problem(error: YAMLError, name: str) -> Problem:
    if not isinstance(error, MarkedYAMLError):
        return Problem(name, str(error).splitlines()[0])
    mark = error.problem_mark or error.context_mark
    where = f"{name}:{mark.line + 1}" if mark else name
    what = (error.problem or error.context or "is not YAML").splitlines()[0].strip()
    if "depth" in what:
        return Problem(where, _TOO_DEEP)
    hint = next((hint for part, hint in _HINTS.items() if part in what), "")
    return Problem(where, what, hint)
