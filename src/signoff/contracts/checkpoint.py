"""How far a run has come, in the words of contract workflows.

It is a view of the run's state, which the journal keeps. What steps gave stands under its
own names, the latest last; the engine's notes stand under names that begin with `_`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from signoff.contracts.model import ParallelItemResult, StepResult

COMPLETED, ITEMS, HINT, BACKUP = "_completed", "_items", "_hint", "_backup"
MARKER = "_marker"
"""Names the work that was committed last; it stays in the database while the run goes on."""
MARKER = "_marker"
"""Names the work that was committed last; it must stay in the database while the run goes on."""


@dataclass(frozen=True)
class Checkpoint:
    """What conditions and commands know of the run."""

    workflow_run_id: str
    workflow_type: str
    current_step: str
    completed_steps: tuple[StepResult, ...] = ()
    iteration_counts: Mapping[str, int] = field(default_factory=dict)
    """How often each step was entered."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What steps gave, by name."""
    parallel_results: Mapping[str, ParallelItemResult] = field(default_factory=dict)
    gate_decision: Mapping[str, Any] | None = None

    def completed(self, step: str) -> bool:
        """Tells whether a step was done, at least once."""
        return any(done.step == step for done in self.completed_steps)

    def result_of(self, step: str) -> Any:
        """Returns what a step gave when it was last done, or None."""
        done = [each.result for each in self.completed_steps if each.step == step]
        return done[-1] if done else None

    def to_json(self) -> dict[str, Any]:
        """Returns it as expressions and programs see it: its data, and its own fields."""
        return {
            **self.data,
            "run_id": self.workflow_run_id,
            "type": self.workflow_type,
            "step": self.current_step,
            "completed": [done.step for done in self.completed_steps],
            "results": {done.step: done.result for done in self.completed_steps},
            "iterations": dict(self.iteration_counts),
            "gate": dict(self.gate_decision) if self.gate_decision else None,
        }


def checkpoint_of(run: str, workflow: str, step: str, state: Mapping[str, Any]) -> Checkpoint:
    """Returns how far a run has come, from its state."""
    completed = [StepResult(**each) for each in state.get(COMPLETED, ())]
    counts: dict[str, int] = {}
    for done in completed:
        counts[done.step] = counts.get(done.step, 0) + 1
    return Checkpoint(
        workflow_run_id=run,
        workflow_type=workflow,
        current_step=step,
        completed_steps=tuple(completed),
        iteration_counts=counts,
        data={key: value for key, value in state.items() if not key.startswith("_")},
        parallel_results={
            key: ParallelItemResult(**each) for key, each in (state.get(ITEMS) or {}).items()
        },
        gate_decision=state.get("_gate"),
    )


def lookup(data: Mapping[str, Any], dotted: str) -> Any:
    """Returns a value by its dotted name, or None where there is none."""
    found: Any = data
    for part in dotted.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found
