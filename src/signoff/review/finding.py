"""One finding: what it is about, its status, and its history across rounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from functools import cached_property
from typing import Any

from signoff.review.behaviors import IssueBehavior
from signoff.review.critique import CritiqueIssue, quotes_nothing
from signoff.review.identity import subject_of
from signoff.review.severity import Severity

HARMLESS = frozenset({Severity.MEDIUM, Severity.LOW})
"""Severities that the judge does not see if the quote is not in the artifact."""


class Label(StrEnum):
    """How a finding changed in a round."""

    NEW = "new"
    PERSISTING = "persisting"
    REGRESSED = "regressed"
    """It was fixed before, and is back."""
    INTRODUCED = "introduced"
    """It is new, and about words that the last change added."""
    FIXED = "fixed"


class FindingStatus(StrEnum):
    """The current status of a finding."""

    OPEN = "open"
    FIXED = "fixed"
    DISMISSED = "dismissed"
    """The judge decided not to fix it."""
    IGNORED = "ignored"
    """Not shown to the judge, because of its behavior or because its quote was not found."""


@dataclass(frozen=True)
class Finding:
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
    first: int = 0
    """The first iteration that reported it."""
    last: int = 0
    """The latest iteration that reported it."""
    history: tuple[tuple[int, str], ...] = ()
    """(iteration, label) in order; "ignored" and "dismissed" occur as labels too."""
    returns: int = 0
    """How often it came back after it was fixed."""
    flagged_by: tuple[str, ...] = ()
    """The reviewers that last reported it."""
    artifact: str = ""
    """The digest of the text in which it was last reported, or found to be fixed."""
    unverified: bool = False
    """Whether none of its reports has a quote that is in the artifact."""

    @property
    def omission(self) -> bool:
        """Whether it is about something that is missing, and so has no quote."""
        return quotes_nothing(self.quote)

    @cached_property
    def subject(self) -> str:
        """What it is about, normalized for comparison."""
        return subject_of(self.quote, self.location, self.finding, omission=self.omission)

    def with_history(self, iteration: int, label: str) -> Finding:
        """Returns it with one more entry in its history."""
        return replace(self, history=(*self.history, (iteration, label)))

    def label_at(self, iteration: int) -> str:
        """Returns its label at the end of an iteration, "" if it was not reported yet."""
        return next((label for when, label in reversed(self.history) if when <= iteration), "")

    def to_json(self) -> dict[str, Any]:
        """Returns it as it is stored."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("severity", "status", "label"):
            values[name] = values[name].value
        values["history"] = [list(entry) for entry in self.history]
        values["flagged_by"] = list(self.flagged_by)
        return values

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Finding:
        """Reads what `to_json` wrote."""
        return cls(
            **{
                **raw,
                "severity": Severity(raw["severity"]),
                "status": FindingStatus(raw["status"]),
                "label": Label(raw["label"]),
                "history": tuple((iteration, label) for iteration, label in raw["history"]),
                "flagged_by": tuple(raw["flagged_by"]),
            }
        )


def is_set_aside(issue: CritiqueIssue) -> bool:
    """Whether an issue is not shown to the judge."""
    if issue.behavior == IssueBehavior.IGNORE:
        return True
    return issue.unverified and issue.severity in HARMLESS
