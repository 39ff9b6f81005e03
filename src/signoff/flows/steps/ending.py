"""How a flow's run ends: what goes to `final/`, approved or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.core.context import StepContext
from signoff.core.outcome import Outcome
from signoff.documents.control_characters import escape_controls
from signoff.flows.flow import Flow
from signoff.flows.state import FlowState
from signoff.flows.step import WorkflowStep
from signoff.review.findings import Finding
from signoff.review.severity import Severity

Work = tuple[Outcome, dict[str, Any]]
"""What a handler returns."""


def at_last_round(ctx: StepContext, flow: Flow, step: WorkflowStep) -> bool:
    """Tells whether the engine will end the run, or ask a person, when this step is left."""
    return flow.starts_round(step) and at_limit(ctx, flow)


def at_limit(ctx: StepContext, flow: Flow) -> bool:
    """Tells whether no further iteration may begin unless a person says so."""
    # A person may grant as many rounds again, so the limit is any multiple.
    return ctx.iteration % flow.config.max_iterations == 0


async def save_approved(ctx: StepContext, flow: Flow, state: Mapping[str, Any]) -> dict[str, Any]:
    """Puts the approved artifact where whoever started the run looks for it; returns the update."""
    view = FlowState(state)
    await ctx.write(_place(flow), view.artifact)
    earlier = bool(view.raw.get("unapproved"))
    if not earlier and view.reviewed:
        return {}
    lines = [
        "# Approved",
        "",
        f"`{flow.config.output.filename}` was approved in iteration {ctx.iteration}.",
    ]
    if earlier:
        lines[-1] += f" If `{_beside(flow)}` is here, it is an older version."
    lines += _remarked(view)
    await ctx.write(
        _place(flow, "status.md"), escape_controls("\n".join(lines)) + "\n", key="status"
    )
    return {"unapproved": ""} if earlier else {}


async def save_unapproved(
    ctx: StepContext, flow: Flow, state: Mapping[str, Any], why: str = ""
) -> dict[str, Any]:
    """Puts the best reviewed artifact into `final/` with what is left to do; returns the update."""
    view = FlowState(state)
    rounds = "1 iteration" if ctx.iteration == 1 else f"{ctx.iteration} iterations"
    why = why or f"{rounds} without approval"
    best = view.best
    chosen = str(best["artifact"]) if best else view.artifact
    await ctx.write(_place(flow), chosen, key="best")
    unreviewed = view.artifact if best and view.artifact != best["artifact"] else ""
    if unreviewed:
        await ctx.write(_place(flow, _beside(flow)), unreviewed, key="unreviewed")
    status = escape_controls(_status(flow, view, why, unreviewed))
    await ctx.write(_place(flow, "status.md"), status, key="status")
    return {"unapproved": why, "_reason": why}


def _status(flow: Flow, view: FlowState, why: str, unreviewed: str) -> str:
    best = view.best
    lines = ["# Not approved", "", f"{why}.", ""]
    if best:
        lines.append(f"`{flow.config.output.filename}` is the best version that was reviewed")
        lines[-1] += f" (iteration {best['iteration']}; open: {_counted(best['score'])})."
    else:
        lines.append(f"`{flow.config.output.filename}` was not reviewed.")
    if unreviewed:
        lines.append(f"`{_beside(flow)}` is the last refinement, which nobody has reviewed.")
    open_now = view.ledger.open()
    if open_now:
        lines += ["", "## Remaining work", ""]
        lines += map(_left, open_now)
    lines += _remarked(view)
    return "\n".join(lines) + "\n"


def _left(finding: Finding) -> str:
    doubt = ", unverified" if finding.unverified else ""
    return f"- [{finding.severity}] {finding.id} ({finding.constraint}{doubt}): {finding.finding}"


def _remarked(view: FlowState) -> list[str]:
    said = [f"- iteration {r['iteration']}, {r['step']}: {r['text']}" for r in view.remarks]
    return ["", "## Remarks", "", *said] if said else []


def _counted(score: list[int]) -> str:
    said = [f"{n} {s.value}" for s, n in zip(Severity, score, strict=True) if n]
    return ", ".join(said) or "nothing"


def _place(flow: Flow, name: str = "") -> str:
    return f"{flow.config.output.dir}/{name or flow.config.output.filename}"


def _beside(flow: Flow) -> str:
    stem, dot, suffix = flow.config.output.filename.rpartition(".")
    return f"{stem}_unreviewed.{suffix}" if dot else f"{suffix}_unreviewed"
