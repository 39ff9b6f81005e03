"""The progress of a run, as conditions and commands of contract workflows see it.

It is a view of the run's state, which the journal stores. The state has the steps' results
under their own names, and the engine's own entries under names that begin with `_`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from signoff.contracts.model import ParallelItemResult, StepResult

COMPLETED, ITEMS, HINT, BACKUP = "_completed", "_items", "_hint", "_backup"
MARKER = "_marker"
"""Names the work that was committed last, which must stay in the database during the run."""


@dataclass(frozen=True)
class Checkpoint:
    """What conditions and commands know about the run."""

    workflow_run_id: str
    workflow_type: str
    current_step: str
    completed_steps: tuple[StepResult, ...] = ()
    iteration_counts: Mapping[str, int] = field(default_factory=dict)
    """How often each step was done."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """The values that steps returned, by name."""
    parallel_results: Mapping[str, ParallelItemResult] = field(default_factory=dict)
    gate_decision: Mapping[str, Any] | None = None

    def completed(self, step: str) -> bool:
        """Whether a step was done, at least once."""
        return any(done.step == step for done in self.completed_steps)

    def result_of(self, step: str) -> Any:
        """Returns the latest result of a step, or None."""
        results = (each.result for each in reversed(self.completed_steps) if each.step == step)
        return next(results, None)

    def to_json(self) -> dict[str, Any]:
        """Returns it as expressions and programs see it: its data and its own fields."""
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
    """Returns the checkpoint of a run with this state."""
    completed = [StepResult(**each) for each in state.get(COMPLETED, ())]
    return Checkpoint(
        workflow_run_id=run,
        workflow_type=workflow,
        current_step=step,
        completed_steps=tuple(completed),
        iteration_counts=Counter(done.step for done in completed),
        data={key: value for key, value in state.items() if not key.startswith("_")},
        parallel_results={
            key: ParallelItemResult(**each) for key, each in (state.get(ITEMS) or {}).items()
        },
        gate_decision=state.get("_gate"),
    )


def lookup(data: Mapping[str, Any], dotted: str) -> Any:
    """Returns a value by its dotted name, or None if there is none."""
    value: Any = data
    for part in dotted.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
