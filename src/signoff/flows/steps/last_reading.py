"""The reading before an approval that ends a run, and what no critic has read all the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from signoff.core.context import StepContext
from signoff.flows.flow import Flow
from signoff.flows.state import FlowState, after, joined, reading_key
from signoff.flows.step import StepKind
from signoff.flows.steps.reading import Reading, format_issues, undecided
from signoff.flows.steps.updates import ask_for_guidance, decided_by_human
from signoff.review.critique import Critique
from signoff.review.finding import Finding
from signoff.review.policy import for_judge


async def read_rest(
    ctx: StepContext, flow: Flow, raw: Mapping[str, Any]
) -> tuple[list[Critique], dict[str, Any]]:
    """Has everything read that was not read in its current form; returns what was found.

    Only flows that skip readings need this; others read everything in every round.
    """
    update: dict[str, Any] = {}
    found: list[Critique] = []
    if flow.config.rereview == "all":
        return found, update
    for step in flow.of_kind(StepKind.CRITIQUE):
        reading = Reading(flow, step, FlowState(after(raw, update)))
        if unread := reading.unread():
            results = await reading.read_all(ctx, unread, key=f"last reading of {step.id}")
            more, critiques = reading.update(ctx, results, more=True)
            update = joined(update, more)
            found += critiques
    answer = await _ask_human(ctx, flow, FlowState(after(raw, update)), found)
    return for_judge(found), joined(update, answer)


def approval_warnings(flow: Flow, state: FlowState, findings: Sequence[Finding]) -> list[str]:
    """Returns what to know about a text that passed; `findings` are on changed passages."""
    warnings = []
    if findings:
        names = ", ".join(f"{each.id} ({each.severity.value})" for each in findings)
        warnings.append(f"passed although no critic has read these changed passages again: {names}")
    if skipped := _never_read(flow, state):
        warnings.append(f"passed although no critic has read it against: {', '.join(skipped)}")
    return warnings


async def _ask_human(
    ctx: StepContext, flow: Flow, state: FlowState, critiques: Sequence[Critique]
) -> dict[str, Any]:
    """Asks about findings that the judge must not decide alone; returns the update."""
    issues = undecided(critiques, state.ledger)
    if not issues:
        return {}
    question = f"The last reading has findings that you must decide on:\n{format_issues(issues)}"
    answer = await ask_for_guidance(ctx, flow, "escalate", question)
    return answer | decided_by_human(state, [issue.finding_id for issue in issues], answer)


def _never_read(flow: Flow, state: FlowState) -> list[str]:
    """Returns the constraints that no critic has read in this run, in any version.

    A finding that halts a serial critique skips the constraints after it. If the judge dismisses
    that finding, nothing else brings them back.
    """
    reviews = [(s, c) for s in flow.of_kind(StepKind.CRITIQUE) for c in flow.selected(s)]
    read = {
        constraint.id
        for step, constraint in reviews
        for agent in flow.reviewers(step, constraint)
        for path in state.files
        if reading_key(constraint.id, agent, path) in state.readings
    }
    # A constraint about other files than those of the artifact has nothing to be read against.
    due = [c for _, c in reviews if any(map(c.applies_to, state.files))]
    return list(dict.fromkeys(c.id for c in due if c.id not in read))
