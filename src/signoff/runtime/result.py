"""The result of driving a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from signoff.core.frozen import thaw
from signoff.core.outcome import Outcome, Status
from signoff.core.remedies import Remedy
from signoff.core.run_state import RunState
from signoff.core.spend import Spend
from signoff.core.stop_reason import ErrorInfo, StopReason, error_of, remedies
from signoff.runtime.store_port import InboxItem


@dataclass(frozen=True)
class RunResult:
    """A run after it was driven to its end or its next wait."""

    run: str
    workflow: str
    status: Status
    outcome: Outcome | None
    """How the last finished step ended."""
    state: dict[str, Any] = field(repr=False)
    """What the handlers produced. It is long, and asyncio prints the results of its tasks."""
    step: str | None
    iteration: int
    reason: str
    """Why it stopped, as text for humans."""
    inbox: tuple[InboxItem, ...]
    """Its pending requests."""
    spend: Spend
    due_at: float | None = None
    """When a parked run can continue, or the first deadline of a waiting one."""
    stop_reason: StopReason | None = None
    """Why it stopped, as a value."""
    started_at: float = 0.0
    """When it was started, in seconds since 1970."""
    updated_at: float = 0.0
    """When its last event was recorded."""

    @classmethod
    def of(cls, name: str, state: RunState, pending: Iterable[InboxItem]) -> RunResult:
        """Returns the result of a run in this state, with its pending requests."""
        return cls(
            run=name,
            workflow=state.workflow,
            status=state.status,
            outcome=state.outcome,
            state=thaw(state.state_with_pending),
            step=state.step,
            iteration=state.iteration,
            reason=state.reason,
            stop_reason=state.stop_reason,
            inbox=tuple(pending),
            spend=state.spend,
            due_at=state.due_at,
            started_at=state.started_at,
            updated_at=state.updated_at,
        )

    @property
    def error(self) -> ErrorInfo | None:
        """The error that stopped it: its kind, message, agent, model and remedies."""
        return error_of(self.status, self.stop_reason)

    @property
    def remedies(self) -> tuple[Remedy, ...]:
        """What the user can do to continue it; empty after a final end."""
        return remedies(self.run, self.status, self.stop_reason, self.due_at)

    @property
    def ok(self) -> bool:
        """Whether the run completed."""
        return self.status is Status.COMPLETED
