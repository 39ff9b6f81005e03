"""The plan of a contract workflow: what performs each step, and which conditions are checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signoff.core.workflow import Workflow
from signoff.notation import Ask


@dataclass(frozen=True)
class ContractPlan:
    """The steps of a run that is not started."""

    steps: Sequence[Mapping[str, Any]]
    database: str | None
    columns: Sequence[str] = ("STEP", "DONE BY", "BEFORE", "AFTER")
    warnings: Sequence[str] = ()
    """None: it reads no files."""

    @property
    def rows(self) -> Sequence[Sequence[object]]:
        """One row for each step."""
        return [
            (step["name"], _worker(step), _names(step["before"]), _names(step["after"]))
            for step in self.steps
        ]

    @property
    def notes(self) -> Sequence[str]:
        """Notes below the table."""
        if self.database is None:
            return []
        return [f"database: {self.database}; changes are committed only if the conditions hold"]

    @property
    def facts(self) -> Mapping[str, Any]:
        """The plan as JSON values."""
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
    """Returns the plan of a workflow."""
    contract = workflow.source["contract"]
    return ContractPlan(contract["steps"], contract["database"])


def asks(workflow: Workflow, _params: Mapping[str, Any]) -> list[Ask]:
    """Returns the agents and roles that a run asks, each with the model that its step names."""
    steps = workflow.source["contract"]["steps"]
    return [Ask(step["asks"][1], step["asks"][2]) for step in steps if step["asks"]]


def _worker(step: Mapping[str, Any]) -> str:
    items = f", for each of {step['items']}" if step["items"] else ""
    match step["command"]:
        case None:
            return f"agent {step['asks'][1]}{items}" if step["asks"] else "a human"
        case [*words]:
            return f"{' '.join(words)}{items}"
        case {"name": name}:
            return f"{name}{items}"
        case other:
            return f"{other}{items}"


def _names(conditions: Sequence[Sequence[Any]]) -> str:
    return ", ".join(str(condition[0]) for condition in conditions) or "-"
