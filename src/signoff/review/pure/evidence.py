"""Checks the evidence of critiques: quotes against the artifact, verdicts against the issues.

A quote is valid if its words occur in the artifact in the same order and case. What people change
when they quote it is ignored: typography, markup and line breaks, the marks of lists and headings,
the case of the first letter and the punctuation at the end. It has to begin and end with
whole words and numbers, because "can" is no quote of "cannot", nor "5" of "50".

Unicode form, the shape of quotation marks and dashes, invisible characters and Markdown are
typography. They are removed without changing the number of lines, so that a position in the words
leads back to a line. List, heading and quotation marks are layout only at the start of a line
(elsewhere `-` and `>` are operators), so `split_markers` keeps track of them.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, islice

from signoff.core.digest import text_digest
from signoff.core.one_line import one_line
from signoff.core.severity import Severity
from signoff.review.pure.critique import OMISSION, Critique, CritiqueIssue, Overall

SHORTEST_PART = 8
"""Characters that the longest part of a shortened quote needs; shorter ones occur in any text."""
MOST_OCCURRENCES = 20_000
"""Equal passages of one text that are told apart; a hostile text has millions."""
LONGEST_CONTEXT = 160
"""Characters of a line next to a passage that are stored and compared."""
NEAREST_OTHERS = 10
"""Equal passages on each side that a finding knows are not its own."""
EVIDENCE_RULE = (
    f"copy evidence exactly from the artifact, or write {OMISSION} if something is missing; "
    "drop an issue that has neither"
)
"""The advice that a critic gets with the list of its invalid quotes."""

# No brackets are allowed inside, so a line full of brackets is scanned once, not once for each.
_LINK = re.compile(r"!?\[([^\[\]\n]{0,500})\]\([^()\n]{0,2000}\)")
_ELLIPSIS = re.compile(r"\[\.{3,}\]|\(\.{3,}\)|\.{3,}")
_WRAPPED = re.compile(r"""[\s.]*(["'])(.+)\1[.,;:\s]*""", re.DOTALL)
_ESCAPED_BREAK = re.compile(r"(?:\\r)?\\n")
"""A line break that was escaped twice in JSON."""
_MARKUP_SIGNS = frozenset("*_`~|\\\0")
_END_PUNCTUATION = " .,;:"


@dataclass(frozen=True)
class Occurrence:
    """One of the equal passages of a text; lines count from 1."""

    line: int
    end_line: int
    before: str
    """The nearest line before it that has other words; empty at the start."""
    after: str
    number: int
    """Which of the equal passages it is, from 1."""
    total: int
    """How many there are."""
    digest: str
    """The digests of the lines around it."""
    tie: int
    """How many of those between the same lines come before it."""
    others: tuple[str, ...] = ()
    """The other digests among the equal passages next to it."""

    @property
    def context(self) -> tuple[str, str]:
        """The lines around it."""
        return self.before, self.after


Span = tuple[int, int]
"""The first and last line of a passage, from 0."""


class ArtifactText:
    """An artifact, normalized once for any number of quotes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._by_quote: dict[str, tuple[Occurrence, ...]] = {}
        self._by_lines: dict[tuple[Span, ...], tuple[Occurrence, ...]] = {}

    def contains(self, quote: str) -> bool:
        """Whether a quote occurs in the artifact; "..." matches any words."""
        return bool(self.lines_of(quote))

    def lines_of(self, quote: str) -> list[Span]:
        """Returns the first and last line of each part of a quote, from 0; empty if not found."""
        plain = plain_text(quote)
        if not any(map(str.isalnum, plain)):
            return [*islice(self._signs(quote.strip()), 1)]
        for reading in _readings(plain):
            for form in self._forms:
                if spans := form.spans(reading):
                    return form.lines(spans)
        return []

    def occurrences(self, quote: str) -> tuple[Occurrence, ...]:
        """Returns every passage that a quote can mean, in order.

        Quotes that are written differently and mean the same passages get the same tuple.
        """
        if quote not in self._by_quote:
            passages = tuple(self._passages(quote))
            if passages not in self._by_lines:
                self._by_lines[passages] = self._told_apart(passages)
            self._by_quote[quote] = self._by_lines[passages]
        return self._by_quote[quote]

    def _told_apart(self, passages: Sequence[Span]) -> tuple[Occurrence, ...]:
        contexts = [self._neighbors(*passage) for passage in passages]
        digests = [context_digests(*each) for each in contexts]
        ties: Counter[str] = Counter()
        found = []
        for index, ((first, last), digest) in enumerate(zip(passages, digests, strict=True)):
            window = digests[max(0, index - NEAREST_OTHERS) : index + NEAREST_OTHERS + 1]
            others = tuple(sorted(set(window) - {digest}))
            place = (first + 1, last + 1, *contexts[index], index + 1, len(passages))
            found.append(Occurrence(*place, digest, ties[digest], others))
            ties[digest] += 1
        return tuple(found)

    def _neighbors(self, first: int, last: int) -> tuple[str, str]:
        """Returns the nearest lines on both sides that are not blank and have other words."""
        befores, afters = self._distinct_lines
        before, after = befores[first], afters[last]
        start = self._lines[before][:LONGEST_CONTEXT] if before >= 0 else ""
        end = self._lines[after][:LONGEST_CONTEXT] if after < len(self._lines) else ""
        return start, end

    @cached_property
    def _lines(self) -> list[str]:
        """Its lines, without what surrounds their words."""
        return [" ".join(line.split()) for line in self._text.split("\n")]

    @cached_property
    def _distinct_lines(self) -> tuple[list[int], list[int]]:
        """For each line, the nearest ones before and after it that have other words.

        Blank lines have none. -1 stands for the start of the text, the number of lines for its end.
        """
        before = _nearest_distinct(self._lines)
        last = len(self._lines) - 1
        after = [last - each for each in reversed(_nearest_distinct(self._lines[::-1]))]
        return before, after

    @cached_property
    def line_starts(self) -> list[int]:
        """The position at which each line begins."""
        lengths = (len(line) + 1 for line in self._text.split("\n"))
        return list(accumulate(lengths, initial=0))[:-1]

    def _passages(self, quote: str) -> Iterator[Span]:
        plain = plain_text(quote)
        if not any(map(str.isalnum, plain)):
            yield from self._signs(quote.strip())
            return
        for reading in _readings(plain):
            for form in self._forms:
                if spans := form.every(reading):
                    yield from form.lines(spans)
                    return
        # A shortened quote has parts; where the first one begins is enough to find the passage.
        if parts := self.lines_of(quote):
            yield parts[0][0], parts[-1][1]

    def _signs(self, signs: str) -> Iterator[Span]:
        """Yields the lines of a quote of nothing but signs, at least two, which count as they are.

        Signs of Markdown don't count: `**` is markup in one text and code in another.
        """
        markup = _MARKUP_SIGNS.issuperset(signs) or not _ELLIPSIS.sub("", signs)
        start, height = -1, signs.count("\n")
        for _ in range(MOST_OCCURRENCES if len(signs) > 1 and not markup else 0):
            start = self._text.find(signs, start + 1)
            if start < 0:
                return
            first = bisect_right(self.line_starts, start) - 1
            yield first, first + height

    @cached_property
    def _forms(self) -> list[_Form]:
        """The text as it is, and with links as readers see them."""
        texts = dict.fromkeys([self._text, _LINK.sub(r"\1", self._text)])
        plains = list(dict.fromkeys(plain_text(text) for text in texts))
        return [_Form(plain, unmarked=unmarked) for plain in plains for unmarked in (False, True)]


@dataclass(frozen=True)
class CritiqueProblems:
    """Everything that is wrong with a critique."""

    missing_quotes: tuple[CritiqueIssue, ...] = ()
    """Issues with a quote that is not in the artifact."""
    no_evidence: tuple[CritiqueIssue, ...] = ()
    """Issues that neither quote a passage nor say that something is missing."""
    contradiction: str = ""
    """How the verdict and the issues disagree."""

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.missing_quotes or self.no_evidence or self.contradiction)

    @property
    def unverified(self) -> frozenset[str]:
        """The ids of the issues without valid evidence."""
        return frozenset(issue.id for issue in (*self.missing_quotes, *self.no_evidence))

    def messages(self) -> list[str]:
        """Returns the problems as messages to the critic."""
        messages = [self.contradiction] if self.contradiction else []
        messages += [
            f"the evidence of {issue.id} is not in the artifact: {one_line(issue.evidence, 200)}"
            for issue in self.missing_quotes
        ]
        messages += [f"{issue.id} has no evidence" for issue in self.no_evidence]
        return [*messages, EVIDENCE_RULE] if self.unverified else messages


def find_problems(
    critique: Critique,
    artifact: ArtifactText | Callable[[str], ArtifactText],
    block_on: Sequence[Severity],
) -> CritiqueProblems:
    """Returns what has to be fixed before a critique counts; files are looked up by their path."""
    text = artifact if callable(artifact) else lambda _path: artifact
    quoting = [issue for issue in critique.issues if not issue.omission]
    return CritiqueProblems(
        missing_quotes=tuple(
            issue
            for issue in quoting
            if issue.evidence.strip() and not text(issue.path).contains(issue.evidence)
        ),
        no_evidence=tuple(issue for issue in quoting if not issue.evidence.strip()),
        contradiction=_contradiction(critique, block_on),
    )


def mark_unverified(critique: Critique, problems: CritiqueProblems) -> Critique:
    """Returns a critique with the issues marked that have no valid evidence."""
    ids = problems.unverified
    if not ids:
        return critique
    issues = tuple(replace(issue, unverified=issue.id in ids) for issue in critique.issues)
    note = "not found in the artifact: the evidence of " + ", ".join(
        issue.id for issue in issues if issue.unverified
    )
    return replace(critique, issues=issues, notes=(*critique.notes, note))


def _contradiction(critique: Critique, block_on: Sequence[Severity]) -> str:
    # A verdict and its findings come from the same reply. Where they disagree, nobody can tell
    # which one was meant, so the critic is asked.
    blocking = [issue for issue in critique.issues if issue.severity in set(block_on)]
    if critique.overall is Overall.PASS and blocking:
        names = ", ".join(f"{issue.id} ({issue.severity})" for issue in blocking[:5])
        return f"overall is PASS, but these issues block: {names}"
    if critique.overall is Overall.FAIL and not critique.issues:
        return "overall is FAIL, but there is no issue"
    return ""


class _Form:
    """The words of a plain text, and their lines."""

    def __init__(self, plain: str, *, unmarked: bool) -> None:
        """`unmarked` leaves out the marks of lists, headings and quotations."""
        self._plain, self._unmarked = plain, unmarked

    def spans(self, quote: str) -> list[tuple[int, int]]:
        """Returns the positions of a quote's parts in order; empty if a part is missing."""
        if whole := self._locate(quote, 0):
            return [whole]
        if not _ELLIPSIS.search(quote):
            return []
        # A critic may shorten a long quote. Its parts must occur in their order, and one of them
        # must be long enough to be no coincidence.
        parts = [part for part in _ELLIPSIS.split(quote) if any(map(str.isalnum, part))]
        longest = max(len(self._split(part)[0]) for part in parts)
        if len(parts) > 1 and longest < SHORTEST_PART:
            return []
        spans: list[tuple[int, int]] = []
        for part in parts:
            span = self._locate(part, spans[-1][1] if spans else 0)
            if span is None:
                return []
            spans.append(span)
        return spans

    def lines(self, spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Returns the first and last line of positions in the words."""
        return [(self._line(start), self._line(end - 1)) for start, end in spans]

    def _split(self, plain: str) -> tuple[str, Mapping[int, LineMark]]:
        """Returns the words of a text, and the marks that are not among them."""
        return split_markers(plain) if self._unmarked else (" ".join(plain.split()), {})

    def every(self, quote: str) -> list[tuple[int, int]]:
        """Returns the positions of all passages that a quote can mean, without overlaps."""
        matches = list(self._matches(quote, 0, MOST_OCCURRENCES))
        exact = [(start, end) for start, end, is_exact in matches if is_exact]
        found: list[tuple[int, int]] = []
        for start, end in exact or [(start, end) for start, end, _ in matches]:
            if not found or start >= found[-1][1]:
                found.append((start, end))
        return found

    def _locate(self, quote: str, begin: int) -> tuple[int, int] | None:
        """Returns the position of a passage, the one with the same first letter and end if any."""
        similar: tuple[int, int] | None = None
        for start, end, is_exact in self._matches(quote, begin, MOST_TRIES):
            if is_exact:
                return start, end
            similar = similar or (start, end)
        return similar

    def _matches(self, quote: str, begin: int, tries: int) -> Iterator[tuple[int, int, bool]]:
        """Yields where the words of a quote are, and whether its first letter and end agree."""
        words, markers = self._split(quote.strip())
        core = words.rstrip(_END_PUNCTUATION)
        if not core:
            return
        # A single word counts only as it is: in code, Item and item are different names.
        any_case = core[0].swapcase() if " " in core else core[0]
        skipped = 1 if any_case != core[0] and len(any_case) == 1 else 0
        start = begin - 1
        for _ in range(tries):
            start = self._words.find(core[skipped:], max(start + 1, begin) + skipped) - skipped
            if start < begin:
                return
            end = start + len(core)
            if self._words[start] not in (core[0], any_case) or not self._fits(start, end, markers):
                continue
            is_exact = self._words.startswith(words, start)
            yield start, start + len(words) if is_exact else end, is_exact

    def _fits(self, start: int, end: int, markers: Mapping[int, LineMark]) -> bool:
        """Whether a match is made of whole words, with the same marks before them."""
        if splits_word(self._words, start) or splits_word(self._words, end):
            return False
        # What precedes the first word and follows the last one is not part of the quote.
        inner = self._marked[bisect_right(self._marked, start) : bisect_left(self._marked, end)]
        if not all(self._markers[each].agrees(markers.get(each - start)) for each in inner):
            return False
        return all(
            marker.agrees(self._markers.get(start + position))
            for position, marker in markers.items()
        )

    @cached_property
    def _parts(self) -> tuple[str, Mapping[int, LineMark]]:
        # Split on first use: exact quotes are found in the first form, and the others take longer.
        return self._split(self._plain)

    @cached_property
    def _words(self) -> str:
        return self._parts[0]

    @cached_property
    def _markers(self) -> Mapping[int, LineMark]:
        return self._parts[1]

    @cached_property
    def _marked(self) -> list[int]:
        return sorted(self._markers)

    def _line(self, position: int) -> int:
        return bisect_right(self._starts, position) - 1

    @cached_property
    def _starts(self) -> list[int]:
        lengths = (len(self._split(line + "\n")[0]) for line in self._plain.split("\n"))
        # An empty line adds no space between words, and starts where the next line does.
        return list(accumulate((n + 1 if n else 0 for n in lengths), initial=0))[:-1]


def context_digests(before: str, after: str) -> str:
    """Returns the digests of the lines around a passage, of equal length."""
    return text_digest(before)[:8] + text_digest(after)[:8]


def _nearest_distinct(lines: Sequence[str]) -> list[int]:
    """Returns for each line the nearest one before it that is neither blank nor equal, or -1."""
    found: list[int] = []
    last, other = -1, -1
    for number, line in enumerate(lines):
        if last >= 0 and line and line != lines[last]:
            other = last
        found.append(other if line else last)
        if line:
            last = number
    return found


def _readings(plain: str) -> Iterator[str]:
    """Yields what a quote may mean: as it is, without quotation marks, with real line breaks."""
    yield plain
    if wrapped := _WRAPPED.fullmatch(plain):
        yield wrapped[2]
    if _ESCAPED_BREAK.search(plain):
        yield _ESCAPED_BREAK.sub("\n", plain)


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
