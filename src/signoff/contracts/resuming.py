"""What somebody who takes a run up again should know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from signoff.contracts.checkpoint import checkpoint_of


@dataclass(frozen=True)
class ResumeContext:
    """Where a run stands, what was done last, and what failed."""

    workflow_type: str
    run_id: str
    current_step: str
    completed_steps: tuple[str, ...]
    last_step_output: Any = None
    pending_retry: Mapping[str, Any] | None = None
    """The step that fell short: its error, and which attempt it was."""
    parallel_status: Mapping[str, Any] | None = None
    """How many items there are, how many are done, and which failed."""


def resume_context(
    run: str,
    workflow: str,
    step: str,
    state: Mapping[str, Any],
    feedback: str = "",
    attempt: int = 1,
) -> ResumeContext:
    """Returns what to tell whoever goes on with a run."""
    point = checkpoint_of(run, workflow, step, state)
    items = point.parallel_results
    failed = [name for name, each in items.items() if each.status == "failed"]
    return ResumeContext(
        workflow_type=workflow,
        run_id=run,
        current_step=step,
        completed_steps=tuple(done.step for done in point.completed_steps),
        last_step_output=point.completed_steps[-1].result if point.completed_steps else None,
        pending_retry=(
            {"step": step, "error": feedback, "attempt": attempt} if attempt > 1 else None
        ),
        parallel_status=(
            {"total": len(items), "completed": len(items) - len(failed), "failed": failed}
            if items
            else None
        ),
    )
