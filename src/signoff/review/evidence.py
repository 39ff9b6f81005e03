"""Checks the evidence of critiques: quotes against the artifact, verdicts against the issues.

A quote is valid if its words occur in the artifact in the same order and case. Spacing, markup
and the shape of quotation marks and dashes are typography, and are ignored.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate

from signoff.light_dataclass import light_dataclass
from signoff.review.critique import OMISSION, Critique, CritiqueIssue, Overall
from signoff.review.severity import Severity

SHORTEST_PART = 8
"""Characters that the longest part of a shortened quote needs; shorter ones occur in any text."""

_TYPOGRAPHY = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    "\u2026": "...",
    **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff\0", None),  # invisible
    **dict.fromkeys("*_`~|\\", None),  # Markdown
}
_TABLE = str.maketrans(_TYPOGRAPHY)
_MARK = r"(?:#{1,6}|\+)[ \t]+"
_LINE_MARK = re.compile(rf"^[ \t]*(?:>[> \t]*(?:{_MARK})?|{_MARK})", re.MULTILINE)
# No brackets are allowed inside, so a line full of brackets is scanned once, not once for each.
_LINK = re.compile(r"!?\[([^\[\]\n]{0,500})\]\([^()\n]{0,2000}\)")
_ELLIPSIS = re.compile(r"\[\.{3,}\]|\(\.{3,}\)|\.{3,}")
EVIDENCE_RULE = (
    f"copy evidence exactly from the artifact, or write {OMISSION} if something is missing; "
    "drop an issue that has neither"
)
"""The advice that a critic gets with the list of its invalid quotes."""
_WRAPPED = re.compile(r"""(["'])(.+)\1""")


class ArtifactText:
    """An artifact, normalized once for any number of quotes."""

    def __init__(self, text: str) -> None:
        self._forms = [_Form(text)]
        rendered = _LINK.sub(r"\1", text)
        if rendered != text:
            self._forms.append(_Form(rendered))

    def contains(self, quote: str) -> bool:
        """Whether a quote occurs in the artifact; "..." matches any words."""
        return any(form.spans(words) for words in _readings(quote) for form in self._forms)

    def lines_of(self, quote: str) -> list[tuple[int, int]]:
        """Returns the first and last line of each part of a quote, from 0; empty if not found."""
        for words in _readings(quote):
            for form in self._forms:
                if spans := form.spans(words):
                    return [(form.line(start), form.line(end - 1)) for start, end in spans]
        return []


@light_dataclass(frozen=True)
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
            f"the evidence of {issue.id} is not in the artifact: {_shorten(issue.evidence)}"
            for issue in self.missing_quotes
        ]
        messages += [f"{issue.id} has no evidence" for issue in self.no_evidence]
        return [*messages, EVIDENCE_RULE] if self.unverified else messages


def find_problems(
    critique: Critique, artifact: ArtifactText, block_on: Sequence[Severity]
) -> CritiqueProblems:
    """Returns what has to be fixed before a critique counts."""
    quoting = [issue for issue in critique.issues if not issue.omission]
    return CritiqueProblems(
        missing_quotes=tuple(
            issue
            for issue in quoting
            if issue.evidence.strip() and not artifact.contains(issue.evidence)
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
    blocking = [issue for issue in critique.issues if issue.severity in set(block_on)]
    if critique.overall is Overall.PASS and blocking:
        names = ", ".join(f"{issue.id} ({issue.severity})" for issue in blocking[:5])
        return f"overall is PASS, but these issues block approval: {names}"
    if critique.overall is Overall.FAIL and not critique.issues:
        return "overall is FAIL, but there is no issue"
    return ""


class _Form:
    """The normalized words of a text, and their lines."""

    def __init__(self, text: str) -> None:
        self._source = text
        self._words = _normalize(text)

    def spans(self, quote: str) -> list[tuple[int, int]]:
        """Returns the positions of a quote's parts in order; empty if a part is missing."""
        whole = self._words.find(quote)
        if whole >= 0:
            return [(whole, whole + len(quote))]
        parts = [part for part in map(str.strip, _ELLIPSIS.split(quote)) if part]
        if parts == [quote] or max(map(len, parts), default=0) < SHORTEST_PART:
            return []
        spans: list[tuple[int, int]] = []
        for part in parts:
            start = self._words.find(part, spans[-1][1] if spans else 0)
            if start < 0:
                return []
            spans.append((start, start + len(part)))
        return spans

    def line(self, position: int) -> int:
        """Returns the line of the original text for a position in its words."""
        return bisect_right(self._starts, position) - 1

    @cached_property
    def _starts(self) -> list[int]:
        lengths = (len(_normalize(line)) for line in self._source.split("\n"))
        # An empty line adds no space between words, and starts where the next line does.
        return list(accumulate((n + 1 if n else 0 for n in lengths), initial=0))[:-1]


def _readings(quote: str) -> list[str]:
    """Returns the words of a quote: as they are, and without enclosing quotation marks."""
    words = _normalize(quote)
    if not any(map(str.isalnum, words)):
        # A quote of nothing but signs counts only as it is: `**` is markup in one text and code
        # in another.
        signs = quote.strip()
        return [signs] if signs and signs == words and _ELLIPSIS.sub("", signs) else []
    unquoted = _WRAPPED.fullmatch(words)
    return [words, unquoted.group(2).strip()] if unquoted else [words]


def _normalize(text: str) -> str:
    """Returns the words of a text separated by single spaces, without markup and list dashes."""
    plain = _LINE_MARK.sub("", text).translate(_TABLE)
    return " ".join(word for word in plain.split() if word != "-")


def _shorten(quote: str) -> str:
    flat = " ".join(quote.split())
    return flat if len(flat) <= 200 else flat[:200] + "…"
