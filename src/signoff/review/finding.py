"""One finding: what it is about, where it stands, and what each round said of it."""

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
"""Severities no judge hears of when the quote stands nowhere."""


class Label(StrEnum):
    """What a round says of a finding."""

    NEW = "new"
    PERSISTING = "persisting"
    REGRESSED = "regressed"
    """It had been fixed, and is back."""
    INTRODUCED = "introduced"
    """It is new, and about words that the last change brought in."""
    FIXED = "fixed"


class FindingStatus(StrEnum):
    """Where a finding stands."""

    OPEN = "open"
    FIXED = "fixed"
    DISMISSED = "dismissed"
    """A judge decided against it."""
    IGNORED = "ignored"
    """Kept from the judge: its behaviour says so, or its quote stands nowhere."""


@dataclass(frozen=True)
class Finding:
    """A finding as it was last reported, and its story."""

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
    """The iteration that found it."""
    last: int = 0
    """The latest iteration that reported it."""
    history: tuple[tuple[int, str], ...] = ()
    """(iteration, label), in order; what was set aside is called ignored or dismissed."""
    returns: int = 0
    """How often it came back after it had been fixed."""
    flagged_by: tuple[str, ...] = ()
    """Who reported it the last time."""
    artifact: str = ""
    """The digest of the text it was last reported about, or was gone from."""
    unverified: bool = False
    """Whether nobody who reported it quotes what stands in the artifact."""

    @property
    def omission(self) -> bool:
        """Whether it quotes nothing."""
        return quotes_nothing(self.quote)

    @cached_property
    def subject(self) -> str:
        """What it is about, in a form that can be compared."""
        return subject_of(self.quote, self.location, self.finding, omission=self.omission)

    def with_history(self, iteration: int, word: str) -> Finding:
        """Returns it with one more line of its story."""
        return replace(self, history=(*self.history, (iteration, word)))

    def label_at(self, iteration: int) -> str:
        """Returns what was last said of it up to the end of an iteration, or nothing."""
        return next((word for when, word in reversed(self.history) if when <= iteration), "")

    def to_json(self) -> dict[str, Any]:
        """Returns it as it is stored."""
        said = {each.name: getattr(self, each.name) for each in fields(self)}
        for name in ("severity", "status", "label"):
            said[name] = said[name].value
        said["history"] = [list(each) for each in self.history]
        said["flagged_by"] = list(self.flagged_by)
        return said

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Finding:
        """Reads what `to_json` wrote."""
        return cls(
            **{
                **raw,
                "severity": Severity(raw["severity"]),
                "status": FindingStatus(raw["status"]),
                "label": Label(raw["label"]),
                "history": tuple((when, word) for when, word in raw["history"]),
                "flagged_by": tuple(raw["flagged_by"]),
            }
        )


def is_set_aside(issue: CritiqueIssue) -> bool:
    """Tells whether an issue is kept from the judge."""
    if issue.behavior == IssueBehavior.IGNORE:
        return True
    return issue.unverified and issue.severity in HARMLESS
