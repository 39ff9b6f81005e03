"""One reviewer's critique of an artifact against one constraint."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from signoff.core.severity import DEFAULT_SEVERITY, Severity
from signoff.review.record import Record
from signoff.review.work_order import Edit

MOST_ISSUES = 500
"""The most issues that can be kept of one critique, not counting those that block approval."""
DEFAULT_MAX_FINDINGS = 10
"""Issues that are kept of one critique, not counting those that block approval."""
OMISSION = "OMISSION"
"""The evidence of an issue about something that is missing."""


# A quoted passage may begin with the same word, as in "Omissions excepted".
_OMISSION = re.compile(rf"{OMISSION}\b|(?i:{OMISSION})\s*(?:$|[:;,.(\[/\u2013\u2014-])")


def quotes_nothing(evidence: str) -> bool:
    """Whether evidence quotes no passage: it is empty, or says that something is missing."""
    return not evidence.strip() or says_omission(evidence)


def says_omission(evidence: str) -> bool:
    """Whether evidence says that something is missing."""
    return _OMISSION.match(evidence.strip()) is not None


def is_critique(text: str) -> bool:
    """Whether a text is a critique as a check or a critic writes it: one JSON object, and no more.

    An agent that answers so when it should write a text has reviewed it instead.
    """
    if not text.lstrip().startswith("{"):
        return False
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value.get("overall"), str) and isinstance(value.get("issues"), list)


class Overall(StrEnum):
    """A critique's verdict."""

    PASS = "PASS"  # noqa: S105  # a verdict, not a secret
    FAIL = "FAIL"
    ERROR = "ERROR"
    """The reviewer gave no usable critique, and a human chose to continue without one."""


@dataclass(frozen=True)
class CritiqueIssue(Record):
    """One issue that a critic reports."""

    id: str
    rule_id: str = ""
    severity: Severity = DEFAULT_SEVERITY
    location: str = ""
    finding: str = ""
    evidence: str = ""
    """A passage of the artifact, word for word, or `OMISSION`."""
    suggested_fix: str | None = None
    confidence: float | None = None
    """How sure the critic is, from 0 to 1; None if it did not say."""
    edit: Edit | None = None
    """The exact change that fixes it, if the critic knows one."""
    finding_id: str = ""
    """The id of the finding, which stays the same across rounds; set by the engine."""
    label: str = ""
    """What became of the finding, a `Label`; set by the engine."""
    not_reported_again: bool = False
    """Whether it is from an earlier round and was not reported in this one; set by the engine."""
    behavior: str = ""
    """What it does to the review; set by the engine."""
    unverified: bool = False
    """Whether its quote was not found in the artifact."""
    impact: str = ""
    """What goes wrong if it stays."""
    set_aside: str = ""
    """Why the judge does not see it although it was reported, such as an earlier dismissal."""
    path: str = ""
    """The file it is about; empty if the artifact is one text."""
    line: int = 0
    """The line that its critic names; after it was looked for, the line of its passage."""
    dismissed: str = ""
    """Why it does not count although it may be true: a comment in the file decides so."""

    omit_empty: ClassVar = frozenset(
        {
            *("edit", "finding_id", "label", "behavior", "unverified", "impact", "set_aside"),
            *("path", "line", "dismissed", "not_reported_again"),
        }
    )

    @property
    def omission(self) -> bool:
        """Whether it is about something that is missing."""
        return says_omission(self.evidence)

    @property
    def entry(self) -> Hashable:
        """What a list says about it besides its place and its id."""
        about = (self.path, self.rule_id, self.severity, self.finding, self.evidence)
        what = (self.impact, self.suggested_fix, self.confidence, self.unverified)
        edit = (self.edit.kind, self.edit.find, self.edit.text) if self.edit is not None else None
        return (*about, *what, edit, self.not_reported_again)


@dataclass(frozen=True)
class Withdrawal(Record):
    """One issue of an earlier answer that the critic takes back."""

    id: str
    reason: str


@dataclass(frozen=True)
class Critique(Record):
    """A reviewer's verdict and the issues behind it."""

    constraint_id: str
    reviewer: str
    round: int
    overall: Overall
    issues: tuple[CritiqueIssue, ...] = ()
    approved_sections: tuple[Mapping[str, str], ...] = ()
    summary: str = ""
    notes: tuple[str, ...] = ()
    """Remarks of the engine, such as quotes that were not found or a human's decision."""
    paths: tuple[str, ...] = ()
    """The files that were read; empty if the artifact is one text."""
    withdrawn: tuple[Withdrawal, ...] = ()
    """What a corrected answer takes back of the one before; empty once that is done."""
    decided_by: str = ""
    """The human who decided, because the reviewer gave no usable critique."""
    answered_by: str = ""
    """Who answered in the reviewer's place: the agent that `auto` chose, or a human."""

    omit_empty: ClassVar = frozenset({"notes", "paths", "withdrawn", "decided_by", "answered_by"})

    @property
    def files_read(self) -> tuple[str, ...]:
        """The files that were read; of a single text, the one without a name."""
        return self.paths or ("",)
