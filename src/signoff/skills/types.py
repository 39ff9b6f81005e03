"""The words that skills share: confidence, loops, documents, and the result of a review."""

from __future__ import annotations

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
