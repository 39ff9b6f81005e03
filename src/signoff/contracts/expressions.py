"""Conditions written as text: CEL over `ctx`, `result`, `checkpoint`, `params` and `hint`.

`===` and `!==`, as JavaScript has them, are read as `==` and `!=`; inside a string they
stand for themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from signoff.documents.bounded import EvaluationFailed, OutOfBounds, evaluate, variables_of
from signoff.errors import AuthorError

LONGEST = 2_000
"""Characters of an expression; longer ones belong into a function."""

MOST_SUMS = 20
"""How often an expression without loops may add: each sum copies the text built so far."""

NAMES = frozenset({"ctx", "result", "checkpoint", "params", "hint"})
"""What expressions can name."""

_WORD = re.compile(r"[A-Za-z_]\w*")

_ASSIGNS = re.compile(r"(?<![=!<>])=(?!=)")
_PARAMETER = re.compile(r"(?<![\w.])params\.([A-Za-z_]\w*)")
_DATABASE = re.compile(r"\bctx\s*\.\s*(?:db|database)\b")

_GAP = r"(?:\s|//[^\n]*\n)*"
_LOOP = rf"\b(?:all|exists|exists_one|map|filter){_GAP}\("
_EACH = re.compile(rf"{_LOOP}{_GAP}([A-Za-z_]\w*)")
_TYPES = frozenset({"bool", "bytes", "double", "int", "list", "map", "string", "type", "uint"})

_STRING = r"""
    [bB]?[rR][bB]?(?:\"\"\".*?\"\"\"|'''.*?'''|"[^"\n]*"|'[^'\n]*')
    |\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''
    |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'
"""
_TOKEN = re.compile(rf"{_STRING}|(?P<strict>===|!==)|.", re.VERBOSE | re.DOTALL)
_SYNTAX = re.compile(rf"{_STRING}|//[^\n]*|(?P<loop>{_LOOP})|.", re.VERBOSE | re.DOTALL)


class BadExpression(AuthorError):  # noqa: N818  # named for what it says
    """A condition cannot be read or evaluated."""


class Expression:
    """A condition, read once and evaluated as often as needed."""

    def __init__(self, text: str) -> None:
        """Reads the text; raises `BadExpression` naming what is wrong."""
        self.text = text
        _check(text)

    @property
    def names(self) -> frozenset[str]:
        """What it may look at."""
        return _named(self.text)

    @property
    def is_quick(self) -> bool:
        """Whether it ends at once: it has no loops, and builds no long texts."""
        return not _loops(self.text) and self.text.count("+") <= MOST_SUMS

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """Returns what it comes to; a name that is missing raises `BadExpression`."""
        try:
            return evaluate(plain_cel(self.text), dict(values), linear=self.is_quick)
        except OutOfBounds as error:
            raise BadExpression(f"{self.text!r}: {error}; write a function") from error
        except EvaluationFailed as error:
            first = next(iter(str(error).strip().splitlines()), "no reason given")
            what = f"{self.text!r}: {error.kind}: {first}{self._missing(values)}"
            raise BadExpression(what) from error

    def holds(self, values: Mapping[str, Any]) -> bool:
        """Tells whether it is true; anything but true or false raises `BadExpression`."""
        value = self.evaluate(values)
        if not isinstance(value, bool):
            raise BadExpression(f"{self.text!r} gives {value!r:.80}, neither true nor false")
        return value

    def _missing(self, values: Mapping[str, Any]) -> str:
        """Says how to give the parameters that were not given, if there are any."""
        names = dict.fromkeys(_PARAMETER.findall(_without_strings(self.text)))
        given = values.get("params", {})
        missing = [f"-i {name}=..." for name in names if name not in given]
        return f"; start it with {' '.join(missing)}" if missing else ""


@lru_cache(maxsize=512)
def _named(text: str) -> frozenset[str]:
    return NAMES & frozenset(_WORD.findall(text))


@lru_cache(maxsize=512)
def _loops(text: str) -> bool:
    return any(match.lastgroup == "loop" for match in _SYNTAX.finditer(text))


@lru_cache(maxsize=512)
def _check(text: str) -> None:
    """Raises `BadExpression` for a text that is no expression or names unknown things."""
    if not text.strip():
        raise BadExpression("the expression is empty")
    if len(text) > LONGEST:
        raise BadExpression(f"the expression has {len(text)} characters; at most {LONGEST}")
    try:
        names = variables_of(plain_cel(text))
    except OutOfBounds as error:
        raise BadExpression(f"{text!r} cannot be read: {error}; write a function") from error
    except EvaluationFailed as error:
        first = next(iter(str(error).splitlines()), "")
        said = first.split("ERROR:")[-1].strip()
        meant = "; did you mean ==?" if _ASSIGNS.search(_without_strings(text)) else ""
        raise BadExpression(f"{text!r} is no expression: {said}{meant}") from error
    unknown = set(names) - NAMES - _TYPES - set(_EACH.findall(text))
    if "db" in unknown or _DATABASE.search(_without_strings(text)):
        raise BadExpression(f"{text!r}: texts see no database; name a function, module:function")
    if unknown:
        listed, known = ", ".join(sorted(unknown)), ", ".join(sorted(NAMES))
        raise BadExpression(f"{text!r} names {listed}, and nothing is called so; there is: {known}")


def _without_strings(text: str) -> str:
    return "".join(
        match.group() if match.lastgroup or len(match.group()) == 1 else "''"
        for match in _TOKEN.finditer(text)
    )


def plain_cel(text: str) -> str:
    """Returns an expression with JavaScript's strict comparisons as CEL writes them."""
    return "".join(
        match.group()[:2] if match.lastgroup == "strict" else match.group()
        for match in _TOKEN.finditer(text)
    )
