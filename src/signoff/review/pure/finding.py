"""One finding: what it is about, its status, its history across rounds, and its place in a list.

Every list of findings has one order, `blocking_first`, and people and prompts get equal ones as
one entry, by `group_equal`. Data keeps each finding by itself.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import islice
from operator import attrgetter
from typing import Any, ClassVar, TypeVar

from signoff.core.severity import IssueBehavior, Severity
from signoff.core.words import FindingStatus, Label
from signoff.review.pure.critique import CritiqueIssue, quotes_nothing
from signoff.review.pure.evidence import limit_marks, plain_text, split_markers
from signoff.review.pure.record import Record

_AROUND_QUOTE = " .,;:\"'"
"""Characters that a quote may have at its ends although its passage has not."""
_PLAIN = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u2032", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
        **dict.fromkeys("*_`~#>|\\\u00ad\u200b\u2060\ufeff", None),
    }
)


LISTED = (
    FindingStatus.OPEN,
    FindingStatus.ADDRESSED,
    FindingStatus.DISMISSED,
    FindingStatus.FIXED,
    FindingStatus.IGNORED,
)
"""The order of groups of findings by what has to happen to them: what needs a look first."""
MOST_EQUAL = 10
"""Equal findings that an entry of a list names besides the first one."""
MOST_CACHED = 256
"""Texts whose words are kept: thousands of findings say the same about equal lines."""
LEAST_CONFIDENCE = 0.5
"""A critic that is less sure than this reports a doubt, not a finding."""


@dataclass(frozen=True)
class Finding(Record):
    """A finding as it was last reported, and its history."""

    id: str
    constraint: str
    rule: str
    severity: Severity
    quote: str
    location: str
    finding: str
    status: FindingStatus = FindingStatus.OPEN
    label: Label = Label.NEW
    """What became of it when it was last reported, or found to be fixed."""
    not_reported_again: bool = False
    """Whether no critic reported it in its last review, although its passage has not changed."""
    first: int = 0
    """The first round that reported it."""
    last: int = 0
    """The latest round that reported it."""
    history: tuple[tuple[int, Label], ...] = ()
    """(round, label) in order."""
    returns: int = 0
    """How often it came back after it was fixed."""
    flagged_by: tuple[str, ...] = ()
    """The reviewers that last reported it."""
    artifact: str = ""
    """The digest of the text in which it was last reported, or found to be fixed."""
    unverified: bool = False
    """Whether none of its reports has a quote that is in the artifact."""
    reason: str = ""
    """Why it was dismissed."""
    decision: str = ""
    """What a human decided about it; it holds as long as its passage does not change."""
    suggested_fix: str = ""
    """What its critic suggests."""
    edited: bool = False
    """Whether a refinement edited its passage since it was last reported."""
    path: str = ""
    """The file it is about; empty if the artifact is one text. `locate_finding` has the line."""

    line: int = 0
    """The line of its passage when it was last looked for; 0 if its quote was not found."""
    before: str = ""
    """The nearest line before its passage that has other words."""
    after: str = ""
    """The nearest line after its passage that has other words."""
    occurrence: int = 0
    """Which of the equal passages of its file it is about, from 1."""
    occurrences: int = 0
    """How many equal passages its file had."""
    others: tuple[str, ...] = ()
    """Digests of the lines around equal passages that it is not about."""

    omit_empty: ClassVar = frozenset(
        {
            *("reason", "decision", "suggested_fix", "edited", "path", "not_reported_again"),
            *("line", "before", "after", "occurrence", "occurrences", "others"),
        }
    )

    @property
    def became(self) -> Label:
        """What became of it: the one word that people and programs see."""
        return became(self.status, self.label)

    @property
    def omission(self) -> bool:
        """Whether it is about something that is missing, and so has no quote."""
        return quotes_nothing(self.quote)

    @cached_property
    def subject(self) -> str:
        """What it is about, normalized for comparison."""
        return subject_of(self.quote, self.location, self.finding, omission=self.omission)

    @property
    def entry(self) -> Hashable:
        """What a list says about it besides its place and its id."""
        about = (self.path, self.constraint, self.rule, self.severity, self.finding)
        # Without a quote, the subject is a location, which is another one for each finding.
        quote = "" if self.omission else self.subject
        what = (self.suggested_fix, self.reason, self.decision, self.unverified)
        return (*about, quote, *what, self.status, self.label, self.first, self.history)

    def facts(self) -> dict[str, Any]:
        """Returns it for programs, with what became of it as its `status`."""
        own = self.to_json().items()
        stored = {name: value for name, value in own if name not in ("label", "others")}
        awaits = self.status is FindingStatus.ADDRESSED
        sign_off = {"awaiting_sign_off": True} if awaits else {}
        return {**stored, "status": self.became.value, **sign_off}

    def with_history(self, iteration: int, label: Label) -> Finding:
        """Returns it with one more entry in its history."""
        return replace(self, history=(*self.history, (iteration, label)))

    def label_at(self, iteration: int) -> Label | None:
        """Returns its label at the end of a round; None if it was not reported yet."""
        return next((label for when, label in reversed(self.history) if when <= iteration), None)


T = TypeVar("T")


def blocking_first(
    block_on: Collection[Severity],
) -> Callable[[Finding | CritiqueIssue], tuple[int, str, int, int]]:
    """Returns the key that sorts a list of findings, or of what a critic reports.

    What blocks comes first, then what else is open, then the rest; each by file and line.
    """

    def key(each: Finding | CritiqueIssue) -> tuple[int, str, int, int]:
        is_open = each.status is FindingStatus.OPEN if isinstance(each, Finding) else True
        position = (0 if each.severity in block_on else 1) if is_open else 2
        return position, each.path, each.line, each.severity.rank

    return key


def group_equal(
    listed: Iterable[T], entry: Callable[[T], Hashable] = attrgetter("entry")
) -> list[list[T]]:
    """Returns what is one entry of a list together: what says the same about equal passages."""
    groups: dict[Hashable, list[T]] = {}
    for each in listed:
        groups.setdefault(entry(each), []).append(each)
    return list(groups.values())


def describe_equal(group: Sequence[Finding]) -> str:
    """Returns how many findings an entry stands for, and where the others are; "" for one."""
    if len(group) < 2:
        return ""
    others = (f"{f'line {each.line} ' if each.line else ''}[{each.id}]" for each in group[1:])
    shown = ", ".join(islice(others, MOST_EQUAL))
    left = len(group) - 1 - MOST_EQUAL
    return f"{len(group):,} times, also {shown}{f' and {left:,} more' if left > 0 else ''}"


def is_set_aside(issue: CritiqueIssue) -> bool:
    """Whether an issue is not shown to the judge.

    A minor issue is set aside if its quote was not found or its critic is not sure about it.
    """
    if issue.set_aside or issue.dismissed or issue.behavior == IssueBehavior.IGNORE:
        return True
    unsure = issue.confidence is not None and issue.confidence < LEAST_CONFIDENCE
    # A severe finding is shown even in doubt, because a judge can look. A minor one without proof
    # would only cost a decision.
    doubtful = issue.unverified or unsure
    return doubtful and issue.severity.defaults.hide_unverified


def became(status: FindingStatus, label: Label) -> Label:
    """Returns what became of a finding with a status, if it had a label while it was open."""
    match status:
        case FindingStatus.OPEN:
            return label
        case FindingStatus.ADDRESSED | FindingStatus.FIXED:
            return Label.FIXED
        case FindingStatus.DISMISSED:
            return Label.DISMISSED
        case FindingStatus.IGNORED:
            return Label.IGNORED


@lru_cache(maxsize=MOST_CACHED)
def normalize(text: str) -> str:
    """Returns a text without differences that two quotes of one passage may have."""
    # Ids of recorded findings depend on this form: changing it would make every known finding new.
    plain = unicodedata.normalize("NFKC", limit_marks(text)).translate(_PLAIN)
    return " ".join(plain.split()).casefold()


def passage_words(text: str) -> str:
    """Returns the words of a passage without what people change when they quote it."""
    words, _ = split_markers(plain_text(text))
    return words.casefold()


@lru_cache(maxsize=MOST_CACHED)
def subject_of(
    evidence: str, location: str, finding: str, *, omission: bool, exact: bool = False
) -> str:
    """Returns what a finding is about: its quote, else its location, else its text.

    `exact` keeps the marks and punctuation of the quote: ids were always made of them.
    """
    words = normalize(evidence) if exact else passage_words(evidence).strip(_AROUND_QUOTE)
    quote = "" if omission else words or evidence.strip()
    return quote or normalize(location) or normalize(finding)
