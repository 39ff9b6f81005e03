"""The reading before an approval that ends a run, and what to know about a text that passed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from signoff.core.context import StepContext
from signoff.flows.flow import Flow
from signoff.flows.state import UNREVIEWED, FlowState, after, joined
from signoff.flows.step import StepKind
from signoff.flows.steps.decision_material import findings_material
from signoff.flows.steps.reading import Reading, format_issues, undecided
from signoff.flows.steps.updates import ask_for_guidance, decided_by_human
from signoff.review.adjudication import Adjudication
from signoff.review.critique import Critique
from signoff.review.policy import for_judge


async def read_rest(
    ctx: StepContext, flow: Flow, raw: Mapping[str, Any]
) -> tuple[list[Critique], dict[str, Any]]:
    """Has everything read that was not read in its current form; returns what was found.

    There are several ways to skip a reading: `rereview: changed`, a finding that halts a serial
    critique and is then dismissed, a fix that no critique step follows. An approval ends the run,
    so nothing after it would make up for them.
    """
    update: dict[str, Any] = {}
    found: list[Critique] = []
    for step in flow.of_kind(StepKind.CRITIQUE):
        reading = Reading(flow, step, FlowState(after(raw, update)))
        if unread := reading.unread():
            results = await reading.read_all(ctx, unread, key=f"last reading of {step.id}")
            more, critiques = reading.update(ctx, results, more=True)
            update = joined(update, more)
            found += critiques
    answer = await _ask_human(ctx, flow, FlowState(after(raw, update)), found)
    return for_judge(found), joined(update, answer)


def approval_warnings(flow: Flow, judged: Adjudication) -> list[str]:
    """Returns what to know about a text that passed without a review."""
    if UNREVIEWED not in judged.notes:
        return []
    # Files that no constraint is about can pass without that setting.
    allowed = ": the flow sets allow_unreviewed" if flow.config.allow_unreviewed else ""
    return [f"passed without a review{allowed}"]


async def _ask_human(
    ctx: StepContext, flow: Flow, state: FlowState, critiques: Sequence[Critique]
) -> dict[str, Any]:
    """Asks about findings that the judge must not decide alone; returns the update."""
    issues = undecided(critiques, state.ledger)
    if not issues:
        return {}
    question = f"The last reading has findings that you must decide on:\n{format_issues(issues)}"
    known = state.ledger.findings
    findings = [known[each.finding_id] for each in issues if each.finding_id in known]
    shown = findings_material(flow, state, findings)
    answer = await ask_for_guidance(ctx, flow, "escalate", question, shown)
    return answer | decided_by_human(state, [issue.finding_id for issue in issues], answer)
