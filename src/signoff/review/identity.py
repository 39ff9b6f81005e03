"""Tells which issues of several readings, and of several rounds, are one and the same finding.

A finding is what one rule of one constraint says about one passage, or about one place where
something is missing. A passage that was reworded between two rounds is recognised by its
likeness, but never mistaken for another passage that stands in the artifact beside it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from signoff.core.digest import SHORT, text_digest
from signoff.review.critique import Critique, CritiqueIssue, quotes_nothing

ALIKE = 85.0
"""How much of two quotes must agree, in percent, for one to be the other reworded."""
MOST_COMPARED = 1_000
"""Characters of a quote that are compared; longer ones differ early or not at all."""

_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
        **dict.fromkeys("*_`~#>|\\\u00ad\u200b\u2060\ufeff", None),
    }
)
_BLANKS = re.compile(r"\s+")


class ExistingFinding(Protocol):
    """What is compared of a finding that was seen before."""

    @property
    def id(self) -> str: ...
    @property
    def constraint(self) -> str: ...
    @property
    def rule(self) -> str: ...
    @property
    def subject(self) -> str: ...
    @property
    def finding(self) -> str: ...
    @property
    def omission(self) -> bool: ...


def normalize(text: str) -> str:
    """Returns a text without what may differ between two quotes of one passage."""
    plain = unicodedata.normalize("NFKC", text).translate(_PLAIN)
    return _BLANKS.sub(" ", plain).strip().casefold()


def subject_of(evidence: str, location: str, finding: str, *, omission: bool) -> str:
    """Returns what a finding is about: its quote, else its place, else its words."""
    quote = "" if omission else normalize(evidence) or evidence.strip()
    return quote or normalize(location) or normalize(finding)


def identify(
    known: Iterable[ExistingFinding], critiques: Sequence[Critique], artifact: str
) -> list[list[str]]:
    """Returns the lasting id of every issue, critique by critique, in their order."""
    register = _Register(_Passages(artifact))
    for each in known:
        register.add(_Candidate.known(each))
    return [register.identify(critique) for critique in critiques]


@dataclass(frozen=True)
class _Candidate:
    """A finding as far as identity goes."""

    id: str
    constraint: str
    rule: str
    subject: str
    words: str
    quoted: bool

    @classmethod
    def known(cls, each: ExistingFinding) -> _Candidate:
        rule, words = normalize(each.rule), normalize(each.finding)
        return cls(each.id, each.constraint, rule, each.subject, words, not each.omission)

    @classmethod
    def of(cls, issue: CritiqueIssue, constraint: str) -> _Candidate:
        subject = subject_of(issue.evidence, issue.location, issue.finding, omission=issue.omission)
        rule, words = normalize(issue.rule_id), normalize(issue.finding)
        quoted = not quotes_nothing(issue.evidence)
        # Omissions at a place and quotes that read the same are kept apart.
        named = _short(constraint, rule, "quote" if quoted else "omission", subject)
        return cls(named, constraint, rule, subject, words, quoted)

    @property
    def group(self) -> tuple[str, str, bool]:
        """Only findings of one group can be the same."""
        return (self.constraint, self.rule, self.quoted)

    @property
    def statement(self) -> tuple[str, ...]:
        """What a critique says only once."""
        return (self.rule, "quote" if self.quoted else "", self.subject, self.words)

    @property
    def compared(self) -> str:
        """What is left to compare when the subjects differ."""
        return (self.subject if self.quoted else self.words)[:MOST_COMPARED]


_Given = dict[tuple[str, ...], str]
"""Ids by statement."""


@dataclass
class _Passages:
    """A text, normalised when first asked and searched once per passage."""

    text: str
    _plain: str | None = None
    _spans: dict[str, tuple[int, int] | None] = field(default_factory=dict)

    def apart(self, one: str, other: str) -> bool:
        """Tells whether both stand in the text, and at different places."""
        first, second = self._span(one), self._span(other)
        if first is None or second is None:
            return False
        return first[1] <= second[0] or second[1] <= first[0]

    def _span(self, passage: str) -> tuple[int, int] | None:
        if self._plain is None:
            self._plain = normalize(self.text)
        if passage not in self._spans:
            start = self._plain.find(passage)
            self._spans[passage] = (start, start + len(passage)) if start >= 0 else None
        return self._spans[passage]


class _Register:
    """All findings known so far, found by what they are about."""

    def __init__(self, text: _Passages) -> None:
        self._text = text
        self._ids: dict[str, _Candidate] = {}
        self._subjects: dict[tuple[str, str, bool, str], list[_Candidate]] = {}
        self._groups: dict[tuple[str, str, bool], list[_Candidate]] = {}

    def add(self, candidate: _Candidate) -> None:
        """Takes a finding in."""
        self._ids[candidate.id] = candidate
        self._subjects.setdefault((*candidate.group, candidate.subject), []).append(candidate)
        self._groups.setdefault(candidate.group, []).append(candidate)

    def identify(self, critique: Critique) -> list[str]:
        """Returns the ids of a critique's issues; two that say different things get two."""
        issues = [_Candidate.of(each, critique.constraint_id) for each in critique.issues]
        # What is said twice in the same words is said once.
        distinct = list({each.statement: each for each in issues}.values())
        given: dict[tuple[str, ...], str] = {}
        for find in (self._unchanged, self._same, self._reworded, self._new):
            left = [each for each in distinct if each.statement not in given]
            given |= find(left, frozenset(given.values()))
        return [given[each.statement] for each in issues]

    def _unchanged(self, issues: Sequence[_Candidate], claimed: frozenset[str]) -> _Given:
        """Returns findings that are reported in the very same words."""
        found = {}
        for issue in issues:
            about = [each for each in self._about(issue, claimed) if each.words == issue.words]
            if about:
                found[issue.statement] = about[0].id
        return found

    def _same(self, issues: Sequence[_Candidate], claimed: frozenset[str]) -> _Given:
        """Returns findings about the very same thing, though other words are used of it."""
        found: _Given = {}
        for issue in issues:
            about = self._about(issue, claimed | frozenset(found.values()))
            if about:
                found[issue.statement] = _closest_words(issue, about).id
        return found

    def _about(self, issue: _Candidate, claimed: frozenset[str]) -> list[_Candidate]:
        """Returns the findings about exactly this that the critique has not named yet."""
        about = self._subjects.get((*issue.group, issue.subject), [])
        if not about and issue.id in self._ids:
            about = [self._ids[issue.id]]  # its quote was reworded, and now back
        return [each for each in about if each.id not in claimed]

    def _reworded(self, issues: Sequence[_Candidate], claimed: frozenset[str]) -> _Given:
        """Returns findings whose quote has changed a little; the closest issue gets each."""
        free = {
            group: [each for each in self._groups.get(group, ()) if each.id not in claimed]
            for group in {issue.group for issue in issues}
        }
        texts = {group: [each.compared for each in found] for group, found in free.items()}
        best = [
            (score, issue.statement, free[issue.group][place].id)
            for issue in issues
            for score, place in self._closest(issue, free[issue.group], texts[issue.group])
        ]
        taken: dict[str, tuple[str, ...]] = {}
        for _, statement, named in sorted(best, key=lambda each: -each[0]):
            taken.setdefault(named, statement)
        return {statement: named for named, statement in taken.items()}

    def _closest(
        self, issue: _Candidate, free: Sequence[_Candidate], texts: Sequence[str]
    ) -> list[tuple[float, int]]:
        """Returns score and place of the one finding most like an issue; nothing in doubt."""
        alike = [
            (score, place)
            for score, place in _all_alike(issue.compared, texts)
            if not (issue.quoted and self._text.apart(free[place].subject, issue.subject))
        ]
        unique = len(alike) == 1 or (len(alike) > 1 and alike[0][0] > alike[1][0])
        return alike[:1] if unique else []

    def _new(self, issues: Sequence[_Candidate], _: frozenset[str]) -> _Given:
        """Takes the others in as new findings, each with an id nobody has."""
        return {issue.statement: self._added(issue) for issue in issues}

    def _added(self, issue: _Candidate) -> str:
        named = issue.id
        while named in self._ids:
            named = _short(named, issue.words)
        self.add(replace(issue, id=named))
        return named


def _closest_words(issue: _Candidate, about: Sequence[_Candidate]) -> _Candidate:
    if len(about) == 1:
        return about[0]
    from rapidfuzz import fuzz

    return max(about, key=lambda each: fuzz.ratio(each.words, issue.words))


def _all_alike(text: str, others: Sequence[str]) -> list[tuple[float, int]]:
    """Returns (score, place) of every text that is alike, the most alike first."""
    if not others:
        return []
    from rapidfuzz import fuzz, process

    found = process.extract(text, others, scorer=fuzz.ratio, score_cutoff=ALIKE, limit=None)
    return [(score, place) for _, score, place in found]


def _short(*parts: str) -> str:
    return text_digest("\x1f".join(parts))[:SHORT]
