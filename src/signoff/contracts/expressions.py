"""Conditions written as text: CEL over `ctx`, `result`, `checkpoint`, `params` and `hint`.

`===` and `!==`, as JavaScript has them, are read as `==` and `!=`; inside a string they
stand for themselves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from signoff.errors import AuthorError

LONGEST = 2_000
"""Characters of an expression; longer ones belong into a function."""

MOST_TURNS = 2_000_000
"""How often loops in loops may go round: about a second, in which nothing else is done."""

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
_BRACKET = re.compile(
    rf"""{_STRING}|//[^\n]*
    |(?P<loop>{_LOOP})
    |(?P<open>\()|(?P<close>\))|.
    """,
    re.VERBOSE | re.DOTALL,
)


class BadExpression(AuthorError):  # noqa: N818  # named for what it says
    """A condition cannot be read or evaluated."""


class Expression:
    """A condition, read once and evaluated as often as needed."""

    def __init__(self, text: str) -> None:
        """Reads the text; raises `BadExpression` naming what is wrong."""
        self.text = text
        self._program = _compiled(text)

    @property
    def names(self) -> frozenset[str]:
        """What it may look at."""
        return _named(self.text)

    @property
    def is_quick(self) -> bool:
        """Whether it ends at once: loops in loops may take their time."""
        return _depth(self.text) <= 1

    def evaluate(self, values: Mapping[str, Any]) -> Any:
        """Returns what it comes to; a name that is missing raises `BadExpression`."""
        self._check_turns(values)
        try:
            return self._program.execute(dict(values))
        except Exception as error:  # whatever the evaluator raises, the author has to act
            said = str(error).strip().splitlines()[0] if str(error).strip() else repr(error)
            told = f"{self.text!r}: {type(error).__name__}: {said}{self._missing(values)}"
            raise BadExpression(told) from error

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

    def _check_turns(self, values: Mapping[str, Any]) -> None:
        """Refuses what could go on for ever: the evaluator cannot be interrupted."""
        depth = _depth(self.text)
        if depth > 1 and (size := _largest(values)) ** depth > MOST_TURNS:
            raise BadExpression(
                f"{self.text!r}: loops {depth} deep over up to {size} values may take for ever; "
                "write a function"
            )


@lru_cache(maxsize=512)
def _named(text: str) -> frozenset[str]:
    return NAMES & frozenset(_WORD.findall(text))


@lru_cache(maxsize=512)
def _depth(text: str) -> int:
    """Returns how deep loops stand in loops."""
    open_, deepest = [], 0
    for match in _BRACKET.finditer(text):
        if match.lastgroup in ("loop", "open"):
            open_.append(match.lastgroup == "loop")
            deepest = max(deepest, sum(open_))
        elif match.lastgroup == "close" and open_:
            open_.pop()
    return deepest


def _largest(value: Any) -> int:
    """Returns how many values the largest list or map holds."""
    largest, left = 0, [value]
    while left:
        found = left.pop()
        if isinstance(found, Mapping | list | tuple):
            largest = max(largest, len(found))
            left.extend(found.values() if isinstance(found, Mapping) else found)
    return largest


@lru_cache(maxsize=512)
def _compiled(text: str) -> Any:
    import cel

    if not text.strip():
        raise BadExpression("the expression is empty")
    if len(text) > LONGEST:
        raise BadExpression(f"the expression has {len(text)} characters; at most {LONGEST}")
    try:
        program = cel.compile(plain_cel(text))
    except Exception as error:  # the parser raises several kinds, all of them the author's
        first = next(iter(str(error).splitlines()), "")
        said = first.split("ERROR:")[-1].strip()
        meant = "; did you mean ==?" if _ASSIGNS.search(_without_strings(text)) else ""
        raise BadExpression(f"{text!r} is no expression: {said}{meant}") from error
    unknown = set(program.variables()) - NAMES - _TYPES - set(_EACH.findall(text))
    if "db" in unknown or _DATABASE.search(_without_strings(text)):
        raise BadExpression(f"{text!r}: texts see no database; name a function, module:function")
    if unknown:
        listed, known = ", ".join(sorted(unknown)), ", ".join(sorted(NAMES))
        raise BadExpression(f"{text!r} names {listed}, and nothing is called so; there is: {known}")
    return program


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
