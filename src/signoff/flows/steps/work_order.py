"""What the last judge wants changed in the artifact: its work order, or what is left of it.

The agent that carries it out also gets what the work order is about: the findings with their
evidence and rules, and the passages that critics approved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from signoff.core.digest import SHORT, digest
from signoff.core.requests import SIGN_OFF
from signoff.flows.state import FlowState, read
from signoff.review.adjudication import Adjudication, AdjudicationDecision, Pursuit
from signoff.review.constraint import Constraint
from signoff.review.critique import Critique, CritiqueIssue
from signoff.review.findings import Finding, issue_of
from signoff.review.prompt_text import edit_lines, flat
from signoff.review.work_order import (
    Edit,
    EditResult,
    format_work_order,
    parse_work_order,
    work_order_entries,
)

MOST_APPROVED = 20
"""Approved passages that a fixer is shown."""


def bill_of(state: FlowState, applied: EditResult | None = None) -> str:
    """Returns the work order, or what is left of it after some edits were applied."""
    judged = state.adjudication
    if judged is None:
        return ""
    bill = judged.bill_of_work
    entries = work_order_entries(bill)
    # A work order without entries is prose. It cannot be divided, so the agent gets all of it.
    if bill.strip() and (applied is None or not entries):
        return bill
    answered: set[str] = set()
    unfinished: list[Edit] = []
    if applied is not None:
        answered = _answered(judged, applied)
        # Of an issue that was only fixed in part, the edits that did not match are left.
        unfinished = [edit for edit, _why in applied.unmatched if edit.issue in answered]
    # What was applied exactly must not be asked for again: an agent would apply it twice.
    settled = answered | dismissed_names(judged)
    open_entries = [text for issue, text in entries if issue not in settled]
    mentioned = answered.union(issue for issue, _text in entries)
    parts = [
        format_work_order(unfinished, []),
        *open_entries,
        format_work_order([], _unmentioned(state, judged, mentioned)),
    ]
    return "\n\n".join(part.strip("\n") for part in parts if part)


def findings_to_fix(
    state: FlowState, constraints: Mapping[str, Constraint], bill: str
) -> list[str]:
    """Returns the pursued findings that a bill is about, with their rules and what it leaves out.

    The judge's own bill and a bill without entries may be about any of them; what is left of a bill
    after literal edits has an entry for each finding that is left.
    """
    judged = state.adjudication
    if judged is None:
        return []
    issues: dict[str, CritiqueIssue] = {}
    for critique in _critiques(state):
        for issue in critique.issues:
            known = issues.get(issue.finding_id, issue)
            issues[issue.finding_id] = min(known, issue, key=lambda each: each.severity.rank)
    unreported = {each.id: issue_of(each) for each in state.ledger.open()}
    issues = {**unreported, **issues}
    entries = {issue for issue, _text in work_order_entries(bill)}
    if bill == judged.bill_of_work:
        # A judge may forget an entry, or name it by an id that two critics have used.
        entries = set()
    texts = [
        "\n".join(_lines(decision, issues[decision.finding_id], constraints, flat(bill)))
        for decision in judged.pursued()
        if decision.finding_id in issues
        and (not entries or entries & {decision.issue_id, decision.finding_id})
    ]
    return [text for text in texts if text]


def requests_of(state: FlowState) -> list[str]:
    """Returns the change requests of a human, if there is nothing else to carry out."""
    judged, findings = state.adjudication, state.ledger.findings
    pursued = [d.finding_id for d in judged.pursued()] if judged is not None else []
    known = [findings[each] for each in pursued if each in findings]
    only = len(known) == len(pursued) and all(each.constraint == SIGN_OFF for each in known)
    return [each.id for each in known] if only else []


def approved_sections(state: FlowState) -> list[str]:
    """Returns the passages of the artifact that critics approved."""
    sections = [each for critique in _critiques(state) for each in critique.approved_sections]
    texts = [": ".join(filter(None, (each.get("location"), each.get("note")))) for each in sections]
    return list(dict.fromkeys(filter(None, texts)))[:MOST_APPROVED]


def carried_out(state: FlowState, *, changed: bool) -> dict[str, Any]:
    """Returns the update after a step carried out the work order, or left the text unchanged."""
    return {"refined": {"verdict": _verdict_digest(state), "changed": changed}}


def already_applied(state: FlowState) -> bool:
    """Tells whether the last work order has already been carried out in this artifact."""
    refined = state.raw.get("refined") or {}
    return bool(refined.get("changed") and refined["verdict"] == _verdict_digest(state))


def unchanged_before(state: FlowState) -> bool:
    """Tells whether the last refinement left the artifact as it was."""
    return (state.raw.get("refined") or {}).get("changed") is False


def _verdict_digest(state: FlowState) -> str:
    return digest(state.raw.get("last_adjudication"))[:SHORT]


def _critiques(state: FlowState) -> list[Critique]:
    return [each for stored in state.critiques_by_step.values() for each in read(stored)]


def _lines(
    decision: AdjudicationDecision,
    issue: CritiqueIssue,
    constraints: Mapping[str, Constraint],
    bill: str,
) -> list[str]:
    """Returns what the work order does not say about a finding; nothing if it says everything."""
    constraint = constraints.get(decision.constraint, Constraint(decision.constraint))
    rules = {rule.id: f": {flat(rule.text)}" for rule in constraint.rules}
    rule = rules.get(issue.rule_id, "")
    details = {
        "problem": issue.finding,
        "quote": issue.evidence,
        "impact": issue.impact,
        "location": issue.location,
        "suggested fix": issue.suggested_fix or "",
        "guidance of the judge": decision.guidance or "",
    }
    new = {name: flat(text) for name, text in details.items() if flat(text) not in bill}
    lines = [f"  {name}: {text}" for name, text in new.items()]
    if issue.edit and flat(issue.edit.find) not in bill:
        lines += edit_lines(issue.edit)
    heading = f"[{issue.severity}] {decision.issue_id} violates {issue.rule_id or constraint.id}"
    return [f"{heading}{rule}", *lines] if rule or lines else []


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
    if finding is None:
        return "Fix this."
    passage = "" if finding.omission else f" ({finding.quote})"
    return f"Fix this problem: {finding.finding}{passage}"


def wanted_edits(state: FlowState, bill: str) -> list[Edit]:
    """Returns the literal edits of a bill without those for issues that the judge dismissed."""
    judged = state.adjudication
    lasting = {d.issue_id: d.finding_id for d in judged.decisions if d.finding_id} if judged else {}
    dismissed = dismissed_names(judged) if judged else set()
    return [
        # Findings keep their lasting id from round to round, and so do the changes they caused.
        replace(edit, issue=lasting.get(edit.issue, edit.issue))
        for edit in parse_work_order(bill)
        if edit.issue not in dismissed
    ]


def dismissed_names(judged: Adjudication) -> set[str]:
    """Returns the issues that a judge dismissed, by both of their names."""
    dismissed = (d for d in judged.decisions if d.status is Pursuit.DISMISSED)
    return {name for d in dismissed for name in (d.issue_id, d.finding_id)}
