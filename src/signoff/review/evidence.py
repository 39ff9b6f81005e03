"""Checks what a critique rests on: its quotes against the artifact, its verdict against its issues.

A quote counts if its words stand in the artifact in its order and case; spacing, markup and
the shape of quotation marks and dashes are how a text is set, not what it says.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate

from signoff.review.critique import OMISSION, Critique, CritiqueIssue, Overall
from signoff.review.severity import Severity

SHORTEST_PART = 8
"""Letters the longest part of a shortened quote needs; shorter ones stand in any text."""

_SET_ALIKE = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    "\u2026": "...",
    **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff\0", None),  # nobody sees these
    **dict.fromkeys("*_`~|\\", None),  # marks of Markdown
}
_TABLE = str.maketrans(_SET_ALIKE)
_MARK = r"(?:#{1,6}|\+)[ \t]+"
_LINE_MARK = re.compile(rf"^[ \t]*(?:>[> \t]*(?:{_MARK})?|{_MARK})", re.MULTILINE)
# No bracket inside, so a line of nothing but brackets is read once and not once for each.
_LINK = re.compile(r"!?\[([^\[\]\n]{0,500})\]\([^()\n]{0,2000}\)")
_LEFT_OUT = re.compile(r"\[\.{3,}\]|\(\.{3,}\)|\.{3,}")
EVIDENCE_RULE = (
    f"evidence is copied from the artifact exactly, or is {OMISSION} where something is missing; "
    "drop an issue that has neither"
)
"""What a critic is told besides the quotes it got wrong."""
_WRAPPED = re.compile(r"""(["'])(.+)\1""")


class ArtifactText:
    """An artifact, made ready once for any number of quotes."""

    def __init__(self, text: str) -> None:
        self._forms = [_Form(text)]
        rendered = _LINK.sub(r"\1", text)
        if rendered != text:
            self._forms.append(_Form(rendered))

    def contains(self, quote: str) -> bool:
        """Tells whether a quote stands in the artifact; "..." stands for any words."""
        return any(form.spans(each) for each in _readings(quote) for form in self._forms)

    def lines_of(self, quote: str) -> list[tuple[int, int]]:
        """Returns the first and the last line, from 0, of each part of a quote; none if missing."""
        for each in _readings(quote):
            for form in self._forms:
                if spans := form.spans(each):
                    return [(form.line(start), form.line(end - 1)) for start, end in spans]
        return []


@dataclass(frozen=True)
class CritiqueProblems:
    """What is wrong with a critique, all of it."""

    missing_quotes: tuple[CritiqueIssue, ...] = ()
    """Issues that quote what the artifact does not say."""
    no_evidence: tuple[CritiqueIssue, ...] = ()
    """Issues that neither quote nor say that something is missing."""
    contradiction: str = ""
    """How the verdict and the issues disagree."""

    def __bool__(self) -> bool:
        """Tells whether there are any."""
        return bool(self.missing_quotes or self.no_evidence or self.contradiction)

    @property
    def unverified(self) -> frozenset[str]:
        """The ids of the issues nothing in the artifact supports."""
        return frozenset(issue.id for issue in (*self.missing_quotes, *self.no_evidence))

    def messages(self) -> list[str]:
        """Returns the problems in words for whoever wrote the critique."""
        said = [self.contradiction] if self.contradiction else []
        said += [
            f"the evidence of {issue.id} does not stand in the artifact: {_shown(issue.evidence)}"
            for issue in self.missing_quotes
        ]
        said += [f"{issue.id} has no evidence" for issue in self.no_evidence]
        return [*said, EVIDENCE_RULE] if self.unverified else said


def find_problems(
    critique: Critique, artifact: ArtifactText, block_on: Sequence[Severity]
) -> CritiqueProblems:
    """Returns what has to be mended before a critique can be believed."""
    present = [issue for issue in critique.issues if not issue.omission]
    return CritiqueProblems(
        missing_quotes=tuple(
            issue
            for issue in present
            if issue.evidence.strip() and not artifact.contains(issue.evidence)
        ),
        no_evidence=tuple(issue for issue in present if not issue.evidence.strip()),
        contradiction=_contradiction(critique, block_on),
    )


def mark_unverified(critique: Critique, problems: CritiqueProblems) -> Critique:
    """Returns a critique with the issues marked that nothing in the artifact supports."""
    doubtful = problems.unverified
    if not doubtful:
        return critique
    issues = tuple(replace(each, unverified=each.id in doubtful) for each in critique.issues)
    note = "not found in the artifact: the evidence of " + ", ".join(
        issue.id for issue in issues if issue.unverified
    )
    return replace(critique, issues=issues, notes=(*critique.notes, note))


def _contradiction(critique: Critique, block_on: Sequence[Severity]) -> str:
    blocking = [issue for issue in critique.issues if issue.severity in set(block_on)]
    if critique.overall is Overall.PASS and blocking:
        named = ", ".join(f"{issue.id} ({issue.severity})" for issue in blocking[:5])
        return f"overall is PASS, and yet there are issues that block: {named}"
    if critique.overall is Overall.FAIL and not critique.issues:
        return "overall is FAIL, and yet there is no issue"
    return ""


class _Form:
    """The words of a text, and the lines they stand on."""

    def __init__(self, text: str) -> None:
        self._source = text
        self._words = _normal(text)

    def spans(self, wanted: str) -> list[tuple[int, int]]:
        """Returns where the parts of a quote stand, one after the other; nothing if not all do."""
        whole = self._words.find(wanted)
        if whole >= 0:
            return [(whole, whole + len(wanted))]
        parts = [part for part in map(str.strip, _LEFT_OUT.split(wanted)) if part]
        if parts == [wanted] or max(map(len, parts), default=0) < SHORTEST_PART:
            return []
        found: list[tuple[int, int]] = []
        for part in parts:
            at = self._words.find(part, found[-1][1] if found else 0)
            if at < 0:
                return []
            found.append((at, at + len(part)))
        return found

    def line(self, at: int) -> int:
        """Returns the line of the text a place in its words belongs to."""
        return bisect_right(self._starts, at) - 1

    @cached_property
    def _starts(self) -> list[int]:
        lengths = (len(_normal(line)) for line in self._source.split("\n"))
        # An empty line adds no space between words, and begins where the next one does.
        return list(accumulate((n + 1 if n else 0 for n in lengths), initial=0))[:-1]


def _readings(quote: str) -> list[str]:
    """Returns the words a quote may mean: as they are, and without quotation marks around."""
    wanted = _normal(quote)
    if not any(map(str.isalnum, wanted)):
        signs = quote.strip()
        return [signs] if signs and signs == wanted and _LEFT_OUT.sub("", signs) else []
    bare = _WRAPPED.fullmatch(wanted)
    return [wanted, bare.group(2).strip()] if bare else [wanted]


def _normal(text: str) -> str:
    """Returns the words of a text, one space between them; lone dashes are how lists are set."""
    plain = _LINE_MARK.sub("", text).translate(_TABLE)
    return " ".join(word for word in plain.split() if word != "-")


def _shown(quote: str) -> str:
    flat = " ".join(quote.split())
    return flat if len(flat) <= 200 else flat[:200] + "…"
