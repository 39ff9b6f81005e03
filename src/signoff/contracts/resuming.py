"""A summary of a run for the program or the human that resumes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from signoff.contracts.checkpoint import checkpoint_of


@dataclass(frozen=True)
class ResumeContext:
    """The position of a run, its last output, and what failed."""

    workflow_type: str
    run_id: str
    current_step: str
    completed_steps: tuple[str, ...]
    last_step_output: Any = None
    pending_retry: Mapping[str, Any] | None = None
    """The step that will be retried, its error, and the number of the attempt."""
    parallel_status: Mapping[str, Any] | None = None
    """The number of items, the number of completed ones, and the failed ones."""


def resume_context(
    run: str,
    workflow: str,
    step: str,
    state: Mapping[str, Any],
    feedback: str = "",
    attempt: int = 1,
) -> ResumeContext:
    """Returns the summary of a run with this state."""
    checkpoint = checkpoint_of(run, workflow, step, state)
    done = checkpoint.completed_steps
    items = checkpoint.parallel_results
    failed = [name for name, each in items.items() if each.status == "failed"]
    status = {"total": len(items), "completed": len(items) - len(failed), "failed": failed}
    retry = {"step": step, "error": feedback, "attempt": attempt}
    return ResumeContext(
        workflow_type=workflow,
        run_id=run,
        current_step=step,
        completed_steps=tuple(each.step for each in done),
        last_step_output=done[-1].result if done else None,
        pending_retry=retry if attempt > 1 else None,
        parallel_status=status if items else None,
    )
