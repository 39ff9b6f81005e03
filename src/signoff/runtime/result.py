"""What driving a run gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from signoff.core.error_info import ErrorInfo
from signoff.core.outcome import Outcome, Status
from signoff.core.spend import Spend
from signoff.core.stop_reason import StopReason, error_of, remedies
from signoff.remedies import Remedy
from signoff.runtime.store_port import InboxItem


@dataclass(frozen=True)
class RunResult:
    """How a run stands after it was driven as far as it would go."""

    run: str
    workflow: str
    status: Status
    outcome: Outcome | None
    """How the last finished step ended."""
    state: dict[str, Any]
    """What the handlers made."""
    step: str | None
    iteration: int
    reason: str
    """Why it stopped, for people to read."""
    inbox: tuple[InboxItem, ...]
    """What is waited for."""
    spend: Spend
    due_at: float | None = None
    """When a parked run can go on, or the first deadline of a waiting one."""
    stop_reason: StopReason | None = None
    """Why it stopped, as a value."""

    @property
    def error(self) -> ErrorInfo | None:
        """The error that stopped it: its kind, message, agent, model and remedies."""
        return error_of(self.status, self.stop_reason)

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What brings it on from here; empty when it has ended for good."""
        return remedies(self.run, self.status, self.stop_reason, self.due_at)

    @property
    def ok(self) -> bool:
        """Whether what was asked for is there."""
        return self.status is Status.COMPLETED
