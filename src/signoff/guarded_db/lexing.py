"""Finds the quotes and comments of a statement in the same way as the database.

The parser was not written for hostile input. If it disagrees with the database about what is
inside quotes, a statement can be hidden there. So its result is compared with this one, and
characters that only serve to confuse a parser are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from signoff.guarded_db.verdict import Dialect

_COMMENT = r"--[^\r\n]*|/\*(?:(?!/\*|\*/).)*\*/"
# SQLite and PostgreSQL disagree about where a comment inside a comment ends. It is not matched
# here, so it stays in the bare text and is refused.

_SQLITE = rf"""
    (?P<comment>{_COMMENT})
  | '(?:[^']|'')*' | "(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]*\]
"""

_POSTGRES = rf"""
    (?P<comment>{_COMMENT})
  | (?<![\w$])[eE]'(?:[^'\\]|''|\\.)*'
  | '(?:[^']|'')*' | "(?:[^"]|"")*"
  | (?<![\w$])\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$
"""

_LEXERS: dict[Dialect, re.Pattern[str]] = {
    "sqlite": re.compile(_SQLITE, re.VERBOSE | re.DOTALL),
    "postgres": re.compile(_POSTGRES, re.VERBOSE | re.DOTALL),
}

_CALLED = re.compile(r"([^\W\d]\w*)\s*\(")
_NUMBERED = re.compile(r"(?<![\w$])\$\d+")
_NAMED = re.compile(r"(?<![:\w]):([^\W\d]\w*)")


@dataclass(frozen=True)
class LexedStatement:
    """A statement without its quoted parts and comments."""

    bare: str
    """The text with spaces instead of comments and quoted parts; as long as the original."""
    quotes: frozenset[int]
    """The position of the last character of each quoted part."""

    def oddity(self) -> str:
        """Returns what makes the text ambiguous; empty if nothing does."""
        if "/*" in self.bare or "*/" in self.bare:
            return "a comment that is not closed, or is inside another one"
        if any(mark in self.bare for mark in "'\"`"):
            return "a quote that is not closed"
        if re.search(r"\r(?!\n)", self.bare):
            return "a carriage return, which ends a comment for some parsers only"
        if re.search(r"(?i)(?<!\w)u&\s", self.bare):
            return "a string with U& escapes"
        strange = next((c for c in self.bare if _is_ambiguous(c)), None)
        return "" if strange is None else f"the character U+{ord(strange):04X} outside quotes"


def lex(sql: str, dialect: Dialect) -> LexedStatement:
    """Separates a statement from its quoted parts and comments."""
    quotes = []

    def blank(match: re.Match[str]) -> str:
        if match["comment"] is None:
            quotes.append(match.end() - 1)
        return " " * len(match[0])

    return LexedStatement(_LEXERS[dialect].sub(blank, sql), frozenset(quotes))


def called_names(lexed: LexedStatement) -> frozenset[str]:
    """Returns the names before a parenthesis, in lower case: functions, and a few other names."""
    return frozenset(name.lower() for name in _CALLED.findall(lexed.bare))


def separate_parameters(sql: str, dialect: Dialect) -> str:
    """Returns a statement with a blank after each `$1`.

    The parser takes `$1,$` for the beginning of a quoted text; PostgreSQL does not, because a tag
    cannot begin with a digit.
    """
    if dialect != "postgres" or "$" not in sql:
        return sql
    pieces, last = [], 0
    for match in _NUMBERED.finditer(lex(sql, dialect).bare):
        pieces += [sql[last : match.end()], " "]
        last = match.end()
    return "".join([*pieces, sql[last:]])


def named_parameters(sql: str, dialect: Dialect) -> Iterator[re.Match[str]]:
    """Yields each `:name` outside of quotes and comments."""
    return _NAMED.finditer(lex(sql, dialect).bare)


def _is_ambiguous(char: str) -> bool:
    """Whether parsers may treat a character differently: blanks, marks, letters that fold."""
    if char.isascii():
        return not char.isprintable() and char not in "\t\n\r"
    # The long s becomes S and the Kelvin sign k when case is folded: a keyword for some parsers.
    # Sharp s becomes two letters, but is common in names and part of no keyword that matters.
    folded = char.upper() + char.lower() + char.casefold()
    return not char.isalnum() or (char != "ß" and any(c.isascii() for c in folded))
