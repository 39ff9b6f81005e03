"""The types that skills share: confidence, loops, review phases, and where a result leads."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Confidence(StrEnum):
    """How sure an investigation is of its findings, from least to most."""

    EXPLORING = "exploring"
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CERTAIN = "certain"


class LoopState(StrEnum):
    """Where a loop of work and review is."""

    INITIAL = "initial"
    RETRY = "retry"
    COMPLETE = "complete"


class DocumentAvailability(StrEnum):
    """How much of the documentation that a skill could use exists."""

    NONE = "none"
    PARTIAL = "partial"
    FULL = "full"


class QRStatus(StrEnum):
    """The result of a quality review."""

    PASS = "pass"  # noqa: S105  # not a password
    FAIL = "fail"


class ReviewMode(StrEnum):
    """What a review reads."""

    DESIGN = "design"
    CODE = "code"


class ReviewPhase(StrEnum):
    """When a review takes place."""

    DESIGN_REVIEW = "design_review"
    DIFF_REVIEW = "diff_review"
    CODEBASE_REVIEW = "codebase_review"
    REFACTOR_DESIGN = "refactor_design"
    REFACTOR_CODE = "refactor_code"

    @property
    def mode(self) -> ReviewMode:
        """What a review in this phase reads."""
        design = (ReviewPhase.DESIGN_REVIEW, ReviewPhase.REFACTOR_DESIGN)
        return ReviewMode.DESIGN if self in design else ReviewMode.CODE


@dataclass(frozen=True)
class Linear:
    """Every result leads to the same step."""

    next: str


@dataclass(frozen=True)
class Branch:
    """A pass and a failure lead to different steps."""

    if_pass: str
    if_fail: str


@dataclass(frozen=True)
class Terminal:
    """The workflow ends here."""


Routing = Linear | Branch | Terminal
