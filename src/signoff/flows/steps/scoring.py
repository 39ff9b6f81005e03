"""Which version was the best so far: the one with the fewest, least severe open findings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.core.context import StepContext
from signoff.flows.state import FlowState
from signoff.review.severity import Severity


def with_best(ctx: StepContext, state: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the update that keeps the artifact just reviewed if none was better."""
    view = FlowState(state)
    found = [finding.severity for finding in view.ledger.open()]
    score = [found.count(severity) for severity in Severity]
    best = view.best
    if best is not None and list(best["score"]) < score:
        return {}
    return {"best": {"artifact": view.artifact, "iteration": ctx.iteration, "score": score}}
