"""What driving a run gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from signoff.core.outcome import Outcome, Status
from signoff.core.spend import Spend
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
    inbox: tuple[InboxItem, ...]
    """What is waited for."""
    spend: Spend
    due_at: float | None = None
    """When a parked run can go on, or the first deadline of a waiting one."""

    @property
    def ok(self) -> bool:
        """Whether what was asked for is there."""
        return self.status is Status.COMPLETED
