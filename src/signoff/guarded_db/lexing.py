"""Reads a statement's quotes and comments the way the database itself does.

The parser is a second reader of the same text, and was not written for hostile input. Where
the two readers disagree about what is inside quotes, a statement can be hidden; so both
readings are compared, and characters that only help to confuse readers are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from signoff.guarded_db.verdict import Dialect

_COMMENT = r"--[^\r\n]*|/\*(?:(?!/\*|\*/).)*\*/"
# A comment inside a comment ends in one place for SQLite and in another for PostgreSQL: it is
# not matched here, stays in the bare text and is refused.

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

_READERS: dict[Dialect, re.Pattern[str]] = {
    "sqlite": re.compile(_SQLITE, re.VERBOSE | re.DOTALL),
    "postgres": re.compile(_POSTGRES, re.VERBOSE | re.DOTALL),
}

_NAMED = re.compile(r"(?<![:\w]):([^\W\d]\w*)")


@dataclass(frozen=True)
class LexedStatement:
    """A statement with its quotes and comments taken apart."""

    bare: str
    """The text with blanks in place of comments and quoted pieces; as long as the original."""
    quotes: frozenset[int]
    """Where quoted pieces end: the offset of each one's last character."""

    def oddity(self) -> str:
        """Returns what makes the text hard to read for certain; empty when nothing does."""
        if "/*" in self.bare or "*/" in self.bare:
            return "a comment that is not closed, or lies inside another one"
        if any(mark in self.bare for mark in "'\"`"):
            return "a quote that is not closed"
        if re.search(r"\r(?!\n)", self.bare):
            return "a carriage return, which ends a comment for some readers only"
        if re.search(r"(?i)(?<!\w)u&\s", self.bare):
            return "a string with U& escapes"
        strange = next((c for c in self.bare if _strange(c)), None)
        return "" if strange is None else f"the character U+{ord(strange):04X} outside quotes"


def read(sql: str, dialect: Dialect) -> LexedStatement:
    """Takes a statement apart."""
    quotes = []

    def blank(found: re.Match[str]) -> str:
        if found["comment"] is None:
            quotes.append(found.end() - 1)
        return " " * len(found[0])

    return LexedStatement(_READERS[dialect].sub(blank, sql), frozenset(quotes))


def named_places(sql: str, dialect: Dialect) -> Iterator[re.Match[str]]:
    """Finds each `:name` that stands outside quotes and comments."""
    return _NAMED.finditer(read(sql, dialect).bare)


def _strange(char: str) -> bool:
    """Tells whether readers may differ about a character: blanks, marks, letters that fold."""
    if char.isascii():
        return not char.isprintable() and char not in "\t\n\r"
    # Long s becomes S and the Kelvin sign k when case is folded: a keyword for some readers only.
    # Sharp s becomes two letters, but is common in names and part of no keyword that matters.
    folded = char.upper() + char.lower() + char.casefold()
    return not char.isalnum() or (char != "ß" and any(c.isascii() for c in folded))
