"""How the rounds went, and which version was the best: with the fewest, least severe findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.core.context import StepContext
from signoff.flows.state import FlowState
from signoff.review.findings import Ledger, summarize_round
from signoff.review.severity import Severity


def with_best(ctx: StepContext, state: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the update that keeps the artifact just reviewed if none was better."""
    view = FlowState(state)
    found = [finding.severity for finding in view.ledger.open()]
    score = [found.count(severity) for severity in Severity]
    new = {
        "artifact": view.artifact,
        "iteration": ctx.iteration,
        "score": score,
        "read_against": _read_against(view),
    }
    return {} if view.best is not None and _rank(view.best) < _rank(new) else {"best": new}


def with_round(state: FlowState, ledger: Ledger, iteration: int) -> list[Mapping[str, Any]]:
    """Returns the rounds with this one as it stands; earlier ones stay as they were."""
    earlier = [each for each in state.rounds if each["iteration"] != iteration]
    return [*earlier, summarize_round(ledger, iteration)]


def _read_against(view: FlowState) -> int:
    """Returns against how many constraints the artifact was read since it was last taken up."""
    made = view.critiques_by_step.values()
    return len({critique["constraint_id"] for critiques in made for critique in critiques})


def _rank(version: Mapping[str, Any]) -> tuple[int, list[int]]:
    """Orders versions from good to bad; a fault nobody has looked for yet is not absent."""
    return -int(version.get("read_against", 0)), list(version["score"])
