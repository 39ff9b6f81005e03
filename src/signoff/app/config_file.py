"""Reads a settings file and remembers on which line everything stands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from signoff._version import __version__
from signoff.app.config_schema import Path, check
from signoff.app.settings import Layer
from signoff.errors import Problem

VERSION = 1
"""The form of settings files this program reads."""


def read_config(text: str, name: str, problems: list[Problem]) -> Layer:
    """Returns what a settings file sets; every mistake goes to `problems`, with its line."""
    try:
        document = YAML(typ="rt").load(StringIO(text))
    except YAMLError as error:
        problems.append(_syntax_problem(error, name))
        return {}
    if document is None:
        return {}
    if not isinstance(document, CommentedMap):
        problems.append(Problem(f"{name}:1", "is not a list of `key: value` settings"))
        return {}
    line = _lines(document, name)
    version = document.get("version", VERSION)
    if isinstance(version, int) and not isinstance(version, bool) and version > VERSION:
        # Its other keys may be right in that version, so nothing else is said about it.
        problems.append(
            Problem(
                line(("version",)),
                f"version {version} is newer than signoff {__version__} knows ({VERSION})",
                "upgrade signoff, or write the file for version 1",
            )
        )
        return {}
    mistakes: list[Problem] = []
    layer = check(_plain(document), line, mistakes, strict=True)
    problems.extend(sorted(mistakes, key=lambda problem: int(problem.where.rpartition(":")[2])))
    return layer


def _lines(document: CommentedMap, name: str) -> Callable[[Path], str]:
    def line(path: Path) -> str:
        node: Any = document
        number = 0
        for part in path:
            if not isinstance(node, CommentedMap | CommentedSeq):
                break
            key = int(part) if isinstance(node, CommentedSeq) else part
            position = (node.lc.data or {}).get(key)
            if position is None:
                break
            number = position[0]
            node = node[key]
        return f"{name}:{number + 1}"

    return line


def _plain(node: Any) -> Any:
    """Returns ordinary values: the reader's own kinds would not pass as str, int or float."""
    if isinstance(node, Mapping):
        return {str(key): _plain(value) for key, value in node.items()}
    if isinstance(node, list):
        return [_plain(value) for value in node]
    for kind in (bool, int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return node


def _syntax_problem(error: YAMLError, name: str) -> Problem:
    if not isinstance(error, MarkedYAMLError):
        return Problem(name, str(error).splitlines()[0])
    mark = error.problem_mark or error.context_mark
    where = f"{name}:{mark.line + 1}" if mark else name
    what = (error.problem or error.context or "is not YAML").splitlines()[0]
    return Problem(where, what.strip())
