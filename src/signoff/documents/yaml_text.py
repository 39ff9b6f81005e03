"""Reads YAML and remembers on which line everything stands.

What comes out is plain: dicts with texts as keys, lists, texts, numbers, truth values,
None. A text that is no YAML, or would unfold into more than a person writes, is one
problem and never an exception.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.scalarbool import ScalarBoolean

from signoff._version import __version__
from signoff.errors import Problem

Path = tuple[str | int, ...]
"""The way to a value: names of keys and positions in lists."""

MOST_VALUES = 100_000
"""Aliases written out must not become more than this, or a short file fills the memory."""
DEEPEST = 50
_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What the reader raises at odd texts: a date such as 2024-99-99, a mapping as a key."""
_HINTS = {
    "'\\t'": "indent with spaces, not tabs",
    "mapping values are not": "put a text that contains ': ' in quotes, or mend the indentation",
    "found '<scalar>'": "put the whole text in quotes, or indent this line like its neighbours",
    "expected <block end>": "this line is not indented like its neighbours",
    "could not find expected ':'": "write `key: value`, or indent this line below its key",
    "cannot start any token": "put the text in quotes",
    "end of stream": "a quote is opened and never closed",
    "expected ',' or": "a bracket is not closed, or a text inside needs quotes",
}
"""What to do, by words of the reader's complaint; the first that fits."""
MOST_BITS = 4096
"""Of a whole number; Python refuses to print one that is about four times as long."""
_LONG_NUMBER = re.compile(r"[\d_]{1000,}")
_AS_TEXT = "put it in quotes to make it a text"
_TOO_DEEP = f"is nested more than {DEEPEST} deep"


@dataclass(frozen=True)
class Document:
    """A file's content as plain values."""

    name: str
    content: Any
    _node: Any = field(default=None, repr=False, compare=False)

    def at(self, path: Path) -> str:
        """Returns `file:line` of a value; of what is around it when it is not there."""
        return f"{self.name}:{self.line(path)}"

    def line(self, path: Path) -> int:
        """Returns the line a value stands on, from 1."""
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
    """Returns what a text says; None and a problem when it cannot be read."""
    try:
        with warnings.catch_warnings():
            # An anchor used twice is told on standard error otherwise, outside of any report.
            warnings.simplefilter("ignore")
            node = _reader().load(StringIO(text))
        return Document(name, _Plain().of(node), node)
    except _UnusableError as error:
        problems.append(Problem(name, str(error)))
    except RecursionError:
        problems.append(Problem(name, _TOO_DEEP))
    except YAMLError as error:
        problems.append(_syntax_problem(error, name))
    except _FAULTS as error:
        problems.append(_long_number(text, name) or Problem(name, f"is not YAML: {error}"))
    return None


def read_mapping(text: str, name: str, problems: list[Problem], what: str) -> Document | None:
    """Returns a document of keys and values; `what` says what they would be. Empty is a problem."""
    document = read_yaml(text, name, problems)
    return as_mapping(document, problems, what) if document is not None else None


def as_mapping(document: Document, problems: list[Problem], what: str) -> Document | None:
    """Returns a document that holds keys and values; None and a problem for any other."""
    if isinstance(document.content, dict):
        return document
    empty = document.content is None
    message = "is empty" if empty else f"is not a list of `key: value` {what}"
    problems.append(Problem(f"{document.name}:1", message))
    return None


def newer_version(document: Document, known: int) -> Problem | None:
    """Returns what to say about a file written for a program newer than this one."""
    version = document.content.get("version", known)
    if not isinstance(version, int) or isinstance(version, bool) or version <= known:
        return None
    return Problem(
        document.at(("version",)),
        f"version {version} is newer than signoff {__version__} knows ({known})",
        f"upgrade signoff, or write the file for version {known}",
    )


def _reader() -> YAML:
    reader = YAML(typ="rt")
    # Deep nesting makes the scanner slow long before it exhausts the stack.
    reader.max_depth = DEEPEST + 1
    return reader


def _own_key(node: Any, part: str | int) -> Any:
    if isinstance(node, CommentedSeq):
        return int(part) if str(part).isdigit() and int(part) < len(node) else None
    if not isinstance(node, CommentedMap):
        return None
    if part in node:
        return part
    # Some keys are read in any case; their lines are found in any case too.
    wanted = str(part).lower()
    return next((key for key in node if str(key).strip().lower() == wanted), None)


class _UnusableError(Exception):
    """Carries why a document is not unfolded."""


class _Plain:
    """Unfolds the reader's own kinds, which would not pass as str, int or float."""

    def __init__(self) -> None:
        self._count = 0

    def of(self, node: Any, depth: int = 0) -> Any:
        self._count += 1
        if self._count > MOST_VALUES:
            raise _UnusableError(
                f"holds more than {MOST_VALUES:,} values once its aliases are unfolded"
            )
        if depth > DEEPEST:
            raise _UnusableError(_TOO_DEEP)
        if isinstance(node, Mapping):
            return {_key(key): self.of(value, depth + 1) for key, value in node.items()}
        if isinstance(node, list):
            return [self.of(value, depth + 1) for value in node]
        return _scalar(node)


def _key(key: Any) -> str:
    if isinstance(key, Mapping | tuple | list):
        raise _UnusableError("has a list or a mapping where a key should be")
    return str(key)


def _scalar(node: Any) -> Any:
    if isinstance(node, ScalarBoolean):
        return bool(node)
    if isinstance(node, int) and node.bit_length() > MOST_BITS:
        raise _UnusableError(f"has a number of more than {MOST_BITS} bits; {_AS_TEXT}")
    for kind in (bool, int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return node


def _long_number(text: str, name: str) -> Problem | None:
    """Returns where a number is that Python refuses to read, if there is one."""
    found = _LONG_NUMBER.search(text)
    if found is None:
        return None
    line = text.count("\n", 0, found.start()) + 1
    return Problem(f"{name}:{line}", f"has a number of {len(found[0]):,} digits", _AS_TEXT)


def _syntax_problem(error: YAMLError, name: str) -> Problem:
    if not isinstance(error, MarkedYAMLError):
        return Problem(name, str(error).splitlines()[0])
    mark = error.problem_mark or error.context_mark
    where = f"{name}:{mark.line + 1}" if mark else name
    what = (error.problem or error.context or "is not YAML").splitlines()[0].strip()
    if "depth" in what:
        return Problem(where, _TOO_DEEP)
    hint = next((hint for words, hint in _HINTS.items() if words in what), "")
    return Problem(where, what, hint)
