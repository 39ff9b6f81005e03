"""A judge's decisions about the issues that critics reported, and its work order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from signoff.review.severity import Severity


class Verdict(StrEnum):
    """A judge's verdict on the artifact."""

    APPROVED = "APPROVED"
    REWRITE = "REWRITE"
    ERROR = "ERROR"


class Pursuit(StrEnum):
    """Whether an issue will be fixed."""

    PURSUING = "pursuing"
    DISMISSED = "dismissed"


@dataclass(frozen=True)
class AdjudicationDecision:
    """What the judge decided about one issue."""

    issue_id: str
    constraint: str = ""
    severity: Severity = Severity.HIGH
    status: Pursuit = Pursuit.PURSUING
    flagged_by: tuple[str, ...] = ()
    competing_constraint: str | None = None
    adjudication: str | None = None
    rationale: str | None = None
    """Why it was dismissed."""
    guidance: str | None = None
    finding_id: str = ""
    """The id of the finding, which stays the same across rounds; set by the engine."""

    def to_json(self) -> dict[str, Any]:
        """Returns it as it is stored, without empty values."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values |= {"severity": self.severity.value, "status": self.status.value}
        values["flagged_by"] = list(self.flagged_by)
        return {key: value for key, value in values.items() if value not in (None, "", [])}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> AdjudicationDecision:
        """Reads what `to_json` wrote."""
        return cls(
            **{
                **raw,
                "severity": Severity(raw["severity"]),
                "status": Pursuit(raw["status"]),
                "flagged_by": tuple(raw.get("flagged_by", ())),
            }
        )


@dataclass(frozen=True)
class Adjudication:
    """A judge's complete answer."""

    iteration: int
    status: Verdict
    decisions: tuple[AdjudicationDecision, ...] = ()
    tension_analysis: tuple[Mapping[str, Any], ...] = ()
    bill_of_work: str = ""
    """The work order: Markdown with the edits that fix the pursued issues."""
    notes: tuple[str, ...] = ()
    """What the engine changed in it, and what looks inconsistent."""
    stated: Verdict | None = None
    """The judge's own verdict, if the engine overruled it."""

    def pursued(self, severities: Iterable[Severity] | None = None) -> list[AdjudicationDecision]:
        """Returns the decisions to fix an issue, of some severities or of all."""
        selected = set(severities) if severities is not None else set(Severity)
        return [
            d for d in self.decisions if d.status is Pursuit.PURSUING and d.severity in selected
        ]

    @property
    def termination(self) -> dict[str, int]:
        """The numbers of severe issues that are pursued; counted, never taken from the reply."""
        return {
            "critical_pursuing": len(self.pursued([Severity.CRITICAL])),
            "high_pursuing": len(self.pursued([Severity.HIGH])),
        }

    def to_json(self) -> dict[str, Any]:
        """Returns it as it is stored and shown in the run directory."""
        values: dict[str, Any] = {
            "iteration": self.iteration,
            "status": self.status.value,
            "tension_analysis": [dict(tension) for tension in self.tension_analysis],
            "decisions": [decision.to_json() for decision in self.decisions],
            "termination": self.termination,
            "bill_of_work": self.bill_of_work,
        }
        if self.notes:
            values["notes"] = list(self.notes)
        if self.stated is not None:
            values["stated"] = self.stated.value
        return values

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Adjudication:
        """Reads what `to_json` wrote."""
        return cls(
            iteration=raw["iteration"],
            status=Verdict(raw["status"]),
            decisions=tuple(AdjudicationDecision.from_json(entry) for entry in raw["decisions"]),
            tension_analysis=tuple(dict(tension) for tension in raw["tension_analysis"]),
            bill_of_work=raw["bill_of_work"],
            notes=tuple(raw.get("notes", ())),
            stated=Verdict(raw["stated"]) if raw.get("stated") else None,
        )
