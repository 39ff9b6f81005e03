"""A judge's decisions about the issues that critics reported, and its work order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from signoff.core.severity import DEFAULT_BLOCK_ON, DEFAULT_SEVERITY, Severity
from signoff.core.words import TO_FIX, VERDICT_WORDS, Label
from signoff.review.record import Record

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
    adjudication: str | None = None
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
            "adjudication",
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
    tension_analysis: tuple[Mapping[str, Any], ...] = ()
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
