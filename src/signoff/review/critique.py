"""One reviewer's reading of an artifact against one constraint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from signoff.review.edit import Edit
from signoff.review.severity import Severity

OMISSION = "OMISSION"
"""Stands as evidence where the fault is that something is missing."""


# A passage may well begin with that word, as in "Omissions excepted".
_SAYS_SO = re.compile(rf"{OMISSION}\b|(?i:{OMISSION})\s*(?:$|[:;,.(\[/\u2013\u2014-])")


def quotes_nothing(evidence: str) -> bool:
    """Tells whether evidence quotes no passage: it is missing, or says that something is."""
    return not evidence.strip() or says_omission(evidence)


def says_omission(evidence: str) -> bool:
    """Tells whether evidence says that something is missing."""
    return _SAYS_SO.match(evidence.strip()) is not None


class Overall(StrEnum):
    """A critique's verdict."""

    PASS = "PASS"  # noqa: S105  # a verdict, not a secret
    FAIL = "FAIL"
    ERROR = "ERROR"
    """There is no usable reading; a person said how to go on without one."""


@dataclass(frozen=True)
class CritiqueIssue:
    """One issue as a critic states it."""

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
    """The exact change that would mend it, where the critic knows one."""
    finding_id: str = ""
    """The lasting identity, given by the engine."""
    label: str = ""
    """new, persisting, regressed or introduced; given by the engine."""
    behavior: str = ""
    """What it does to the review; given by the engine."""
    unverified: bool = False
    """Whether its quote stands nowhere in the artifact."""

    @property
    def omission(self) -> bool:
        """Whether it is about something that is missing."""
        return says_omission(self.evidence)

    def to_json(self) -> dict[str, Any]:
        """Returns it as it is stored; what the engine has not filled in is left out."""
        said: dict[str, Any] = {
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
            said["edit"] = self.edit.to_json()
        ours = {"finding_id": self.finding_id, "label": self.label, "behavior": self.behavior}
        said.update({key: value for key, value in ours.items() if value})
        if self.unverified:
            said["unverified"] = True
        return said

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> CritiqueIssue:
        """Reads what `to_json` wrote."""
        known = {**raw, "severity": Severity(raw["severity"])}
        if raw.get("edit") is not None:
            known["edit"] = Edit.from_json(raw["edit"])
        return cls(**known)


@dataclass(frozen=True)
class Critique:
    """A whole reading: the verdict and what it rests on."""

    constraint_id: str
    reviewer: str
    iteration: int
    overall: Overall
    issues: tuple[CritiqueIssue, ...] = ()
    approved_sections: tuple[Mapping[str, str], ...] = ()
    summary: str = ""
    notes: tuple[str, ...] = field(default=())
    """What the engine has to say about it: quotes that were not found, a person's decision."""

    def to_json(self) -> dict[str, Any]:
        """Returns it as it is stored and shown in the run directory."""
        said: dict[str, Any] = {
            "constraint_id": self.constraint_id,
            "reviewer": self.reviewer,
            "iteration": self.iteration,
            "overall": self.overall.value,
            "issues": [issue.to_json() for issue in self.issues],
            "approved_sections": [dict(each) for each in self.approved_sections],
            "summary": self.summary,
        }
        return {**said, "notes": list(self.notes)} if self.notes else said

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Critique:
        """Reads what `to_json` wrote."""
        return cls(
            constraint_id=raw["constraint_id"],
            reviewer=raw["reviewer"],
            iteration=raw["iteration"],
            overall=Overall(raw["overall"]),
            issues=tuple(CritiqueIssue.from_json(each) for each in raw["issues"]),
            approved_sections=tuple(dict(each) for each in raw["approved_sections"]),
            summary=raw["summary"],
            notes=tuple(raw.get("notes", ())),
        )
