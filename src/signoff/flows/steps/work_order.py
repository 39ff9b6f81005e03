"""What the last judge wants changed in the artifact: its work order, or what is left of it."""

from __future__ import annotations

from dataclasses import replace

from signoff.flows.state import FlowState
from signoff.review.adjudication import Adjudication, Pursuit
from signoff.review.edit import Edit, EditResult
from signoff.review.findings import Finding
from signoff.review.work_order import (
    format_work_order,
    parse_work_order,
    work_order_entries,
)


def bill_of(state: FlowState, applied: EditResult | None = None) -> str:
    """Returns the work order, or what is left of it after some edits were applied."""
    judged = state.adjudication
    if judged is None:
        return ""
    bill = judged.bill_of_work
    entries = work_order_entries(bill)
    if bill.strip() and (applied is None or not entries):
        return bill
    answered: set[str] = set()
    unfinished: list[Edit] = []
    if applied is not None:
        answered = _answered(judged, applied)
        # Of an issue that was only fixed in part, the edits that did not match are left.
        unfinished = [edit for edit, _why in applied.unmatched if edit.issue in answered]
    settled = answered | _dismissed(judged)
    open_entries = [text for issue, text in entries if issue not in settled]
    mentioned = answered.union(issue for issue, _text in entries)
    parts = [
        format_work_order(unfinished, []),
        *open_entries,
        format_work_order([], _unmentioned(state, judged, mentioned)),
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part)


def _answered(judged: Adjudication, applied: EditResult) -> set[str]:
    """Returns the issues that some edit was applied for, by both of their names."""
    issues = {edit.issue for edit in applied.applied if edit.issue}
    names = [{d.issue_id, d.finding_id} for d in judged.decisions if d.finding_id]
    return issues.union(*(each for each in names if each & issues))


def _unmentioned(
    state: FlowState, judged: Adjudication, mentioned: set[str]
) -> list[tuple[str, str, str]]:
    """Returns what the judge pursues without mentioning it in the work order."""
    findings = {finding.id: finding for finding in state.ledger.open()}
    return [
        (d.issue_id, d.severity.value, d.guidance or _instruction(findings.get(d.finding_id)))
        for d in judged.pursued()
        if not mentioned & {d.issue_id, d.finding_id}
    ]


def _instruction(finding: Finding | None) -> str:
    return f"{finding.finding} ({finding.quote})" if finding else "fix this"


def wanted_edits(state: FlowState, bill: str) -> list[Edit]:
    """Returns the literal edits of a bill without those for issues that the judge dismissed."""
    judged = state.adjudication
    lasting = {d.issue_id: d.finding_id for d in judged.decisions if d.finding_id} if judged else {}
    dismissed = _dismissed(judged) if judged else set()
    return [
        # Findings keep their lasting id from round to round, and so do the changes they caused.
        replace(edit, issue=lasting.get(edit.issue, edit.issue))
        for edit in parse_work_order(bill)
        if edit.issue not in dismissed
    ]


def _dismissed(judged: Adjudication) -> set[str]:
    dismissed = (d for d in judged.decisions if d.status is Pursuit.DISMISSED)
    return {name for d in dismissed for name in (d.issue_id, d.finding_id)}
