"""One reviewer's critique of an artifact against one constraint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from signoff.review.edit import Edit
from signoff.review.severity import Severity

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


class Overall(StrEnum):
    """A critique's verdict."""

    PASS = "PASS"  # noqa: S105  # a verdict, not a secret
    FAIL = "FAIL"
    ERROR = "ERROR"
    """The reviewer gave no usable critique, and a human chose to continue without one."""


@dataclass(frozen=True)
class CritiqueIssue:
    """One issue that a critic reports."""

    id: str
    rule_id: str = ""
    severity: Severity = Severity.HIGH
    location: str = ""
    finding: str = ""
    evidence: str = ""
    """A passage of the artifact, word for word, or `OMISSION`."""
    suggested_fix: str | None = None
    confidence: float = 0.9
    edit: Edit | None = None
    """The exact change that fixes it, if the critic knows one."""
    finding_id: str = ""
    """The id of the finding, which stays the same across rounds; set by the engine."""
    label: str = ""
    """new, persisting, regressed or introduced; set by the engine."""
    behavior: str = ""
    """What it does to the review; set by the engine."""
    unverified: bool = False
    """Whether its quote was not found in the artifact."""

    @property
    def omission(self) -> bool:
        """Whether it is about something that is missing."""
        return says_omission(self.evidence)

    def to_json(self) -> dict[str, Any]:
        """Returns it as it is stored, without the fields that the engine has not set."""
        values: dict[str, Any] = {
            "id": self.id,
            "rule_id": self.rule_id,
            "severity": self.severity.value,
            "location": self.location,
            "finding": self.finding,
            "evidence": self.evidence,
            "suggested_fix": self.suggested_fix,
            "confidence": self.confidence,
        }
        if self.edit is not None:
            values["edit"] = self.edit.to_json()
        engine = {"finding_id": self.finding_id, "label": self.label, "behavior": self.behavior}
        values.update({key: value for key, value in engine.items() if value})
        if self.unverified:
            values["unverified"] = True
        return values

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> CritiqueIssue:
        """Reads what `to_json` wrote."""
        values = {**raw, "severity": Severity(raw["severity"])}
        if raw.get("edit") is not None:
            values["edit"] = Edit.from_json(raw["edit"])
        return cls(**values)


@dataclass(frozen=True)
class Critique:
    """A reviewer's verdict and the issues behind it."""

    constraint_id: str
    reviewer: str
    iteration: int
    overall: Overall
    issues: tuple[CritiqueIssue, ...] = ()
    approved_sections: tuple[Mapping[str, str], ...] = ()
    summary: str = ""
    notes: tuple[str, ...] = field(default=())
    """Remarks of the engine, such as quotes that were not found or a human's decision."""

    def to_json(self) -> dict[str, Any]:
        """Returns it as it is stored and shown in the run directory."""
        values: dict[str, Any] = {
            "constraint_id": self.constraint_id,
            "reviewer": self.reviewer,
            "iteration": self.iteration,
            "overall": self.overall.value,
            "issues": [issue.to_json() for issue in self.issues],
            "approved_sections": [dict(section) for section in self.approved_sections],
            "summary": self.summary,
        }
        return {**values, "notes": list(self.notes)} if self.notes else values

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Critique:
        """Reads what `to_json` wrote."""
        return cls(
            constraint_id=raw["constraint_id"],
            reviewer=raw["reviewer"],
            iteration=raw["iteration"],
            overall=Overall(raw["overall"]),
            issues=tuple(CritiqueIssue.from_json(issue) for issue in raw["issues"]),
            approved_sections=tuple(dict(section) for section in raw["approved_sections"]),
            summary=raw["summary"],
            notes=tuple(raw.get("notes", ())),
        )
