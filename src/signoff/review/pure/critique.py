"""What a critic answers about one constraint, and what a judge decides about its issues."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from signoff.core.severity import DEFAULT_BLOCK_ON, DEFAULT_SEVERITY, Severity
from signoff.core.words import TO_FIX, VERDICT_WORDS, Label
from signoff.review.pure.record import Record
from signoff.review.pure.work_order import Edit

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


PURSUED_COUNTS = {f"{severity.key}_pursuing": severity for severity in DEFAULT_BLOCK_ON}
"""The severities that are counted in `termination`, by their keys there."""


class Verdict(StrEnum):
    """A judge's verdict on the artifact."""

    APPROVED = "APPROVED"
    REWRITE = "REWRITE"
    ERROR = "ERROR"

    @property
    def words(self) -> str:
        """How people read it: a judge passes a text, or asks for changes."""
        return VERDICT_WORDS[self]


class Pursuit(StrEnum):
    """Whether an issue will be fixed."""

    PURSUING = "pursuing"
    DISMISSED = "dismissed"

    @property
    def words(self) -> str:
        """How people read it."""
        return TO_FIX if self is Pursuit.PURSUING else Label.DISMISSED.words


@dataclass(frozen=True)
class AdjudicationDecision(Record):
    """What the judge decided about one issue."""

    issue_id: str
    constraint: str = ""
    severity: Severity = DEFAULT_SEVERITY
    status: Pursuit = Pursuit.PURSUING
    flagged_by: tuple[str, ...] = ()
    competing_constraint: str | None = None
    rationale: str | None = None
    """Why it was dismissed."""
    guidance: str | None = None
    finding_id: str = ""
    """The id of the finding, which stays the same across rounds; set by the engine."""

    omit_empty: ClassVar = frozenset(
        {
            "constraint",
            "flagged_by",
            "competing_constraint",
            "rationale",
            "guidance",
            "finding_id",
        }
    )


@dataclass(frozen=True)
class Adjudication(Record):
    """A judge's complete answer."""

    round: int
    status: Verdict
    decisions: tuple[AdjudicationDecision, ...] = ()
    bill_of_work: str = ""
    """The work order: Markdown with the edits that fix the issues."""
    notes: tuple[str, ...] = ()
    """What the engine changed in it, and what looks inconsistent."""
    stated: Verdict | None = None
    """The judge's own verdict, if the engine overruled it."""
    by: str = ""
    """Who decided: an agent, `policy` if only the rules were applied, or a human's name."""

    omit_empty: ClassVar = frozenset({"notes", "stated", "by"})

    def pursued(self, severities: Iterable[Severity] | None = None) -> list[AdjudicationDecision]:
        """Returns the decisions to fix an issue, of some severities or of all."""
        selected = set(severities) if severities is not None else set(Severity)
        return [
            d for d in self.decisions if d.status is Pursuit.PURSUING and d.severity in selected
        ]

    @property
    def termination(self) -> dict[str, int]:
        """The numbers of severe issues that are pursued; counted, never taken from the reply."""
        return {key: len(self.pursued([severity])) for key, severity in PURSUED_COUNTS.items()}

    def to_json(self) -> dict[str, Any]:
        """Returns it as it is stored and shown in the run directory."""
        return {**super().to_json(), "termination": self.termination}
