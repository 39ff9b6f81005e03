"""The outcomes of a step, and the statuses and ends of a run."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """How a step ended; where that leads is data in its `next`."""

    OK = "ok"
    FAIL = "fail"
    SKIP = "skip"
    ITERATE = "iterate"
    DEFAULT = "_default"


class Status(StrEnum):
    """The status of a run."""

    QUEUED = "queued"
    """Handed over, and no worker drives it yet."""
    RUNNING = "running"
    WAITING = "waiting"
    PARKED = "parked"
    INTERRUPTED = "interrupted"
    COMPLETED = "completed"
    FAILED = "failed"
    LIMIT = "round_limit"
    BUDGET = "budget"
    NOT_CONVERGING = "not_converging"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    FINDINGS = "findings_open"
    """A review is finished, and findings that block are open."""
    INCOMPLETE = "incomplete"
    """A review found nothing that blocks, but has not read everything it should have."""


FINAL = frozenset(
    {
        *(Status.COMPLETED, Status.NOT_CONVERGING, Status.REJECTED, Status.CANCELLED),
        *(Status.FINDINGS, Status.INCOMPLETE),
    }
)
"""Final statuses: resuming such a run only reports how it ended."""


NOT_ENDED = frozenset(
    {Status.QUEUED, Status.RUNNING, Status.WAITING, Status.PARKED, Status.INTERRUPTED}
)
"""A run with another status has an end, though some ends allow it to be resumed."""


class End(StrEnum):
    """A terminal edge that is not plain completion (which is written `None`)."""

    COMPLETED = "completed"
    FAILED = "failed"
    LIMIT = "round_limit"
    NOT_CONVERGING = "not_converging"
    REJECTED = "rejected"
    CANCELLED = "cancelled"
    FINDINGS = "findings_open"
    INCOMPLETE = "incomplete"

    @property
    def status(self) -> Status:
        """The status of a run that took this edge."""
        return Status(self.value)
