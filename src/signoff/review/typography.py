"""Reduces a text to what a quote of it has to agree with: its words, signs and numbers.

Unicode form, the shape of quotation marks and dashes, invisible characters and Markdown are
typography. They are removed here without changing the number of lines, so that a position in
the words leads back to a line. List, heading and quotation marks are layout only at the start
of a line (elsewhere `-` and `>` are operators), so `split_markers` keeps track of them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

MOST_TRIES = 1_000
"""Occurrences of a quote inside other words after which it counts as not found.

In a hostile artifact there are millions.
"""

_TABLE = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        "\u2026": "...",
        "|": " ",  # between the cells of a table
        # Invisible characters, and the code mark of Markdown.
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufe0e\ufe0f\ufeff\0`", None),
    }
)
_MEANINGFUL = frozenset({"<super>", "<sub>", "<fraction>", "<circle>"})
"""Compatibility forms that are not typography: 10² is not 102."""
_MOST_MARKS = 30
"""Combining marks that a character may have. Sorting a longer row takes quadratic time."""
_MOST_SIGNS = 20
"""Characters of marks that are kept before one word; a hostile text has millions."""

# Python and CommonMark agree that a_b is one word; so `_` is emphasis only at its ends. A star
# between letters or digits, or between spaces, is an operator. The quantifiers are possessive.
_MARKUP = re.compile(
    r"\\(?=[!-/:-@\[-`{-~])"  # an escape
    r"|(?<!\w)_++|_++(?!\w)"
    r"|(?<![\d*])\*{2,}+|\*{2,}+(?!\d)"
    r"|(?<![*0-9A-Za-z_)\]])\*(?![*\s])"  # opens emphasis
    r"|(?<=[^*\s])\*(?![*0-9A-Za-z_(])"  # closes it
    r"|~~++"
)
_SIGNS = re.compile(r"[\\_*~]")
_RULE_LINE = re.compile(r"^[ \t|:]*+[-=*_]{3}[-=*_|:+ \t]*+(?=\r?$)", re.MULTILINE)
_MARKER = re.compile(
    r"(?:(?P<line>^|(?<=\r))[ \t]*+|(?<=\s))"
    r"(?:(?P<mark>[-*+\u2022\u25e6\u2023\u00b7]|>++|#{1,6}+)"
    r"|(?P<number>\d{1,3}[.)]|\(?[A-Za-z0-9]\)|[A-Za-z]\.))(?=\s)",
    re.MULTILINE,
)

# Only in alphabets that put spaces between words; in the others a quote may begin anywhere.
_LETTER = r"[0-9A-Za-z\u00c0-\u08ff]"
_INSIDE = re.compile(
    rf"(?<={_LETTER})(?={_LETTER}|'t\b)"
    r"|(?<=\d[.,])(?=\d)|(?<=\d)(?=[.,]\d)"
    r"|(?<=[\s(\[=,:]-)(?=\d)|(?<=\b[Nn]on-)(?=\w)"
)
"""Matches inside a word, inside a number and after its sign: no quote begins or ends there."""


@dataclass(frozen=True)
class LineMark:
    """Marks of lists, headings and quotations that precede a word."""

    signs: str
    number: str
    layout: bool
    """Whether they are at the start of a line."""

    def agrees(self, other: LineMark | None) -> bool:
        """Whether a quote may have one of them where its source has the other."""
        if other is None:
            return self.layout
        if (self.signs, self.number) == (other.signs, other.number):
            return True
        same_number = self.number == other.number or not (self.number and other.number)
        return same_number and (self.layout or other.layout)


def plain_text(text: str) -> str:
    """Returns a text without typography and markup, line by line."""
    # First the table: an invisible sign between a letter and its accent would keep them apart.
    plain = _RULE_LINE.sub("", _unify_characters(text.translate(_TABLE)).translate(_TABLE))
    # Most lines have no markup, and looking around every character of a text takes a second.
    lines = plain.split("\n")
    return "\n".join(_MARKUP.sub("", line) if _SIGNS.search(line) else line for line in lines)


def split_markers(plain: str) -> tuple[str, Mapping[int, LineMark]]:
    """Returns the words of a plain text, and the marks before them by position."""
    words: list[str] = []
    markers: dict[int, LineMark] = {}
    position = last = 0
    for match in _MARKER.finditer(plain):
        if chunk := " ".join(plain[last : match.start()].split()):
            words.append(chunk)
            position += len(chunk) + 1
        last = match.end()
        before = markers.get(position, LineMark("", "", match["line"] is not None))
        if len(before.signs) + len(before.number) < _MOST_SIGNS:
            signs = before.signs + (match["mark"] or "")
            number = before.number + (match["number"] or "")
            markers[position] = LineMark(signs, number, before.layout)
    if chunk := " ".join(plain[last:].split()):
        words.append(chunk)
    return " ".join(words), markers


def splits_word(words: str, position: int) -> bool:
    """Whether a position is inside a word or a number."""
    return _INSIDE.match(words, position) is not None


def find_words(words: str, passage: str) -> int:
    """Returns the position of a passage of whole words, -1 if there is none."""
    start = -1
    for _ in range(MOST_TRIES):
        start = words.find(passage, start + 1)
        if start < 0:
            break
        if not splits_word(words, start) and not splits_word(words, start + len(passage)):
            return start
    return -1


def limit_marks(text: str) -> str:
    """Returns a text with at most so many combining marks in a row that it can be normalized."""
    marks = "" if text.isascii() else "".join(filter(_is_mark, set(text)))
    if not marks:
        return text
    row = f"[{re.escape(marks)}]"
    return re.sub(f"({row}{{{_MOST_MARKS}}}){row}+", r"\1", text)


def _unify_characters(text: str) -> str:
    if text.isascii():
        return text
    forms = [each for each in set(text) if ord(each) not in _TABLE and _is_form(each)]
    compatible = {ord(each): unicodedata.normalize("NFKC", each) for each in forms}
    return unicodedata.normalize("NFC", limit_marks(text.translate(compatible)))


def _is_mark(character: str) -> bool:
    """Whether it is a combining mark, or consists of such marks."""
    return unicodedata.combining(unicodedata.normalize("NFKD", character)[0]) > 0


def _is_form(character: str) -> bool:
    """Whether it is another form of a character: a ligature, a full-width letter."""
    kind = unicodedata.decomposition(character).partition(" ")[0]
    return kind.startswith("<") and kind not in _MEANINGFUL
