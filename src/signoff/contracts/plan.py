"""What a run of a contract workflow would do: who works each step, and what is checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signoff.core.workflow import Workflow

COLUMNS = ("STEP", "WORKED BY", "BEFORE", "AFTERWARDS")


@dataclass(frozen=True)
class ContractPlan:
    """A run that is not started."""

    steps: Sequence[Mapping[str, Any]]
    database: str | None

    @property
    def columns(self) -> Sequence[str]:
        """Headings of the table."""
        return COLUMNS

    @property
    def rows(self) -> Sequence[Sequence[object]]:
        """One row for each step."""
        return [
            (step["name"], _worker(step), _names(step["before"]), _names(step["after"]))
            for step in self.steps
        ]

    @property
    def notes(self) -> Sequence[str]:
        """What the table does not say."""
        if self.database is None:
            return []
        return [f"database: {self.database}; each step's changes are kept only when proved"]

    @property
    def facts(self) -> Mapping[str, Any]:
        """The same for programs."""
        steps = [
            {
                "step": step["name"],
                "worked_by": _worker(step),
                "preconditions": [each[0] for each in step["before"]],
                "postconditions": [each[0] for each in step["after"]],
            }
            for step in self.steps
        ]
        return {"contract": {"database": self.database, "steps": steps}}


def plan(workflow: Workflow) -> ContractPlan:
    """Returns what a run of a workflow would do."""
    contract = workflow.source["contract"]
    return ContractPlan(contract["steps"], contract["database"])


def _worker(step: Mapping[str, Any]) -> str:
    each = f", for each of {step['items']}" if step["items"] else ""
    match step["command"]:
        case None:
            return f"agent {step['asks'][1]}{each}" if step["asks"] else "a person"
        case [*words]:
            return f"{' '.join(words)}{each}"
        case {"name": name}:
            return f"{name}{each}"
        case other:
            return f"{other}{each}"


def _names(conditions: Sequence[Sequence[Any]]) -> str:
    return ", ".join(str(condition[0]) for condition in conditions) or "-"
