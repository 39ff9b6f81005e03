"""A judge's decisions about what critics found, and the work that follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any

from signoff.review.severity import Severity


class Verdict(StrEnum):
    """What a judge says of the artifact."""

    APPROVED = "APPROVED"
    REWRITE = "REWRITE"
    ERROR = "ERROR"


class Pursuit(StrEnum):
    """Whether an issue is worked on."""

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
    """The lasting identity, given by the engine."""

    def to_json(self) -> dict[str, Any]:
        """Returns it as it is stored, nothing empty."""
        said = {f.name: getattr(self, f.name) for f in fields(self)}
        said |= {"severity": self.severity.value, "status": self.status.value}
        said["flagged_by"] = list(self.flagged_by)
        return {key: value for key, value in said.items() if value not in (None, "", [])}

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
    """A judge's whole answer."""

    iteration: int
    status: Verdict
    decisions: tuple[AdjudicationDecision, ...] = ()
    tension_analysis: tuple[Mapping[str, Any], ...] = ()
    bill_of_work: str = ""
    """Markdown: the edits that would satisfy what is pursued."""
    notes: tuple[str, ...] = ()
    """What the engine changed or found odd about it."""
    stated: Verdict | None = None
    """The judge's own word, where it does not stand."""

    def pursued(self, severities: Iterable[Severity] | None = None) -> list[AdjudicationDecision]:
        """Returns what is still worked on, of some severities or of all."""
        wanted = set(severities) if severities is not None else set(Severity)
        return [d for d in self.decisions if d.status is Pursuit.PURSUING and d.severity in wanted]

    @property
    def termination(self) -> dict[str, int]:
        """How much of the worst is still pursued; counted, never taken from the judge."""
        return {
            "critical_pursuing": len(self.pursued([Severity.CRITICAL])),
            "high_pursuing": len(self.pursued([Severity.HIGH])),
        }

    def to_json(self) -> dict[str, Any]:
        """Returns it as it is stored and shown in the run directory."""
        said: dict[str, Any] = {
            "iteration": self.iteration,
            "status": self.status.value,
            "tension_analysis": [dict(each) for each in self.tension_analysis],
            "decisions": [decision.to_json() for decision in self.decisions],
            "termination": self.termination,
            "bill_of_work": self.bill_of_work,
        }
        if self.notes:
            said["notes"] = list(self.notes)
        if self.stated is not None:
            said["stated"] = self.stated.value
        return said

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Adjudication:
        """Reads what `to_json` wrote."""
        return cls(
            iteration=raw["iteration"],
            status=Verdict(raw["status"]),
            decisions=tuple(AdjudicationDecision.from_json(each) for each in raw["decisions"]),
            tension_analysis=tuple(dict(each) for each in raw["tension_analysis"]),
            bill_of_work=raw["bill_of_work"],
            notes=tuple(raw.get("notes", ())),
            stated=Verdict(raw["stated"]) if raw.get("stated") else None,
        )
