"""How a flow's run ends: what is written to `final/`, approved or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.core.context import StepContext
from signoff.documents.control_characters import escape_controls
from signoff.flows.flow import Flow
from signoff.flows.model import STATUS
from signoff.flows.state import FlowState
from signoff.review.findings import Finding
from signoff.review.severity import Severity
from signoff.runtime.amounts import count


def at_limit(ctx: StepContext, flow: Flow) -> bool:
    """Tells whether no further iteration may start unless a human grants more."""
    # Each grant is as many rounds as the limit, so every multiple is a limit again.
    return ctx.iteration % flow.config.max_iterations == 0


async def save_approved(ctx: StepContext, flow: Flow, state: Mapping[str, Any]) -> dict[str, Any]:
    """Writes the approved artifact to `final/`; returns the update."""
    view = FlowState(state)
    output = flow.config.output
    await ctx.write(f"{output.dir}/{output.filename}", view.artifact)
    earlier = bool(view.raw.get("unapproved"))
    if not earlier and view.reviewed:
        return {}
    approved = f"`{output.filename}` was approved in iteration {ctx.iteration}."
    if earlier:
        approved += f" If `{_unreviewed_name(flow)}` is here, it is an older version."
    await _write_status(ctx, flow, ["# Approved", "", approved, *_warning_lines(view)])
    return {"unapproved": ""} if earlier else {}


async def save_unapproved(
    ctx: StepContext, flow: Flow, state: Mapping[str, Any], why: str = ""
) -> dict[str, Any]:
    """Writes the best reviewed artifact to `final/` with what is left to do; returns the update."""
    view = FlowState(state)
    output = flow.config.output
    why = why or f"{count(ctx.iteration, 'iteration')} without approval"
    best = view.best
    chosen = str(best["artifact"]) if best else view.artifact
    await ctx.write(f"{output.dir}/{output.filename}", chosen, key="best")
    lines = ["# Not approved", "", f"{why}.", ""]
    if best:
        version = f"(iteration {best['iteration']}; open: {_format_score(best['score'])})"
        lines.append(f"`{output.filename}` is the best version that was reviewed {version}.")
    else:
        lines.append(f"`{output.filename}` was not reviewed.")
    if best and view.artifact != best["artifact"]:
        name = _unreviewed_name(flow)
        await ctx.write(f"{output.dir}/{name}", view.artifact, key="unreviewed")
        lines.append(f"`{name}` is the last refinement, which nobody has reviewed.")
    if findings := view.ledger.open():
        lines += ["", "## Remaining work", "", *map(_finding_line, findings)]
    await _write_status(ctx, flow, [*lines, *_warning_lines(view)])
    return {"unapproved": why, "_reason": why}


async def _write_status(ctx: StepContext, flow: Flow, lines: list[str]) -> None:
    # A run that was killed right after this write is resumed by later releases too, and a replay
    # has to write the same text. So the wording of this file cannot change.
    text = escape_controls("\n".join(lines)) + "\n"
    await ctx.write(f"{flow.config.output.dir}/{STATUS}", text, key="status")


def _finding_line(finding: Finding) -> str:
    doubt = ", unverified" if finding.unverified else ""
    return f"- [{finding.severity}] {finding.id} ({finding.constraint}{doubt}): {finding.finding}"


def _warning_lines(view: FlowState) -> list[str]:
    lines = [f"- iteration {w['iteration']}, {w['step']}: {w['text']}" for w in view.warnings]
    return ["", "## Remarks", "", *lines] if lines else []


def _format_score(score: list[int]) -> str:
    counts = [f"{n} {s.value}" for s, n in zip(Severity, score, strict=True) if n]
    return ", ".join(counts) or "nothing"


def _unreviewed_name(flow: Flow) -> str:
    stem, dot, suffix = flow.config.output.filename.rpartition(".")
    return f"{stem}_unreviewed.{suffix}" if dot else f"{suffix}_unreviewed"
