"""Checks a judge's answer against the critiques, and judges by the rules alone.

A judge may dismiss issues and explain. It cannot change who reported an issue or lower its
severity, and it cannot approve while a blocking issue is pursued.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from signoff.review.adjudication import Adjudication, AdjudicationDecision, Pursuit, Verdict
from signoff.review.critique import Critique, CritiqueIssue
from signoff.review.edit import Edit
from signoff.review.finding import is_set_aside
from signoff.review.severity import DEFAULT_BLOCK_ON, Severity


def check_verdict(
    adjudication: Adjudication,
    critiques: Sequence[Critique],
    block_on: Sequence[Severity] = DEFAULT_BLOCK_ON,
) -> Adjudication:
    """Returns a judge's answer with one decision per finding, and notes on what was changed."""
    from signoff.review.work_order import without_issues

    cases = _cases(critiques)
    notes: list[str] = []
    assigned = _assign(adjudication.decisions, cases, notes)
    decisions = tuple(_decision(case, assigned.get(case.key, []), notes) for case in cases)
    # What no critic reported is not fixed either, and its literal edits are not applied.
    work_order = without_issues(adjudication.bill_of_work, _unreported(adjudication, cases))
    checked = replace(adjudication, decisions=decisions, bill_of_work=work_order)
    blocking = checked.pursued(block_on)
    if checked.status is Verdict.APPROVED and blocking:
        issues = ", ".join(f"{d.issue_id} ({d.severity.value})" for d in blocking)
        notes.append(f"it cannot pass while these findings have to be fixed: {issues}")
        checked = replace(checked, status=Verdict.REWRITE, stated=Verdict.APPROVED)
    if checked.status is Verdict.REWRITE and not checked.pursued():
        notes.append("the judge asks for changes but names nothing to fix")
    return replace(checked, notes=(*checked.notes, *notes))


def policy_judge(
    critiques: Sequence[Critique],
    *,
    iteration: int,
    block_on: Sequence[Severity] = DEFAULT_BLOCK_ON,
) -> Adjudication:
    """Returns the verdict of the rules alone: every finding is pursued, and no agent is asked."""
    cases = _cases(critiques)
    decisions = tuple(
        replace(_decision(case, [], []), guidance=case.worst[1].suggested_fix) for case in cases
    )
    rewrite = Adjudication(iteration, Verdict.REWRITE, decisions, bill_of_work=_work_order(cases))
    blocked = rewrite.pursued(block_on)
    return rewrite if blocked else replace(rewrite, status=Verdict.APPROVED)


def conflicting_criticals(adjudication: Adjudication) -> list[AdjudicationDecision]:
    """Returns the critical decisions if there are several and one names a competing constraint."""
    critical = adjudication.pursued(Severity.CRITICAL.or_worse)
    conflict = any(decision.competing_constraint for decision in critical)
    return critical if len(critical) > 1 and conflict else []


def for_judge(critiques: Sequence[Critique]) -> list[Critique]:
    """Returns the critiques as a judge sees them, without the issues that are set aside."""
    return [
        replace(critique, issues=tuple(i for i in critique.issues if not is_set_aside(i)))
        for critique in critiques
    ]


@dataclass(frozen=True)
class _Case:
    """One finding that needs a decision, with all its reports."""

    key: str
    name: str
    """Its name in the verdict: the id of its issue, unless two findings share that id."""
    reports: tuple[tuple[Critique, CritiqueIssue], ...]

    @property
    def worst(self) -> tuple[Critique, CritiqueIssue]:
        return min(self.reports, key=lambda report: report[1].severity.rank)

    @property
    def critics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(critique.reviewer for critique, _ in self.reports))

    @property
    def names(self) -> set[str]:
        """All names that a judge may use for it."""
        return {self.key, self.name, *(issue.id for _, issue in self.reports)}


def _cases(critiques: Sequence[Critique]) -> list[_Case]:
    """Returns the findings to decide about; one that several critics report is one case."""
    reports: dict[str, list[tuple[Critique, CritiqueIssue]]] = {}
    for critique in for_judge(critiques):
        for issue in critique.issues:
            key = issue.finding_id or f"{critique.constraint_id}/{critique.reviewer}/{issue.id}"
            reports.setdefault(key, []).append((critique, issue))
    names = {key: case_reports[0][1].id for key, case_reports in reports.items()}
    uses = Counter(names.values())
    return [
        _Case(key, key if uses[names[key]] > 1 else names[key], tuple(case_reports))
        for key, case_reports in reports.items()
    ]


def _unreported(adjudication: Adjudication, cases: Sequence[_Case]) -> set[str]:
    """Returns the issues that the judge decided about although no critic reported them."""
    reported = set[str]().union(*(case.names for case in cases))
    named = {d.issue_id for d in adjudication.decisions if d.finding_id not in reported}
    return named - reported


def _assign(
    decisions: Sequence[AdjudicationDecision], cases: Sequence[_Case], notes: list[str]
) -> dict[str, list[AdjudicationDecision]]:
    """Returns the judge's decisions by finding; those about unknown issues are dropped."""
    by_name: dict[str, list[_Case]] = {}
    for case in cases:
        for name in case.names:
            by_name.setdefault(name, []).append(case)
    assigned: dict[str, list[AdjudicationDecision]] = {}
    for decision in decisions:
        matches = _matching_cases(decision, by_name)
        if not matches:
            notes.append(f"{decision.issue_id}: decided by the judge but never reported; dropped")
        # An ambiguous dismissal must not close a finding that the judge did not look at.
        if len(matches) > 1 and decision.status is Pursuit.DISMISSED:
            names = ", ".join(case.name for case in matches)
            notes.append(f"{decision.issue_id}: could be any of {names}; none is dismissed")
            continue
        for case in matches:
            assigned.setdefault(case.key, []).append(decision)
    return assigned


def _matching_cases(
    decision: AdjudicationDecision, by_name: Mapping[str, Sequence[_Case]]
) -> Sequence[_Case]:
    """Returns the findings a decision may be about.

    A finding id is exact, but several critics may have used the same issue id. Then the
    constraint and the critics that the decision names narrow it down.
    """
    matches = by_name.get(decision.finding_id) or by_name.get(decision.issue_id, ())
    if len(matches) > 1 and decision.constraint:
        matches = [c for c in matches if c.worst[0].constraint_id == decision.constraint] or matches
    if len(matches) > 1 and decision.flagged_by:
        matches = [c for c in matches if set(c.critics) & set(decision.flagged_by)] or matches
    return matches


def _decision(
    case: _Case, decisions: Sequence[AdjudicationDecision], notes: list[str]
) -> AdjudicationDecision:
    """Returns the decision about a finding; in doubt, it is pursued."""
    critique, issue = case.worst
    pursuing = [decision for decision in decisions if decision.status is Pursuit.PURSUING]
    if pursuing and len(pursuing) < len(decisions):
        notes.append(f"{case.name}: both to fix and dismissed by the judge; it has to be fixed")
    chosen = (*pursuing, *decisions, AdjudicationDecision(case.name))[0]
    return replace(
        chosen,
        issue_id=case.name,
        constraint=critique.constraint_id,
        severity=issue.severity,
        flagged_by=case.critics,
        finding_id=issue.finding_id,
    )


def _work_order(cases: Sequence[_Case]) -> str:
    from signoff.review.work_order import format_work_order

    edits: list[Edit] = []
    notes: list[tuple[str, str, str]] = []
    for case in sorted(cases, key=lambda case: case.worst[1].severity.rank):
        case_edits = dict.fromkeys(issue.edit for _, issue in case.reports if issue.edit)
        if case_edits:
            edits.extend(replace(edit, issue=case.name) for edit in case_edits)
            continue
        _, issue = case.worst
        instruction = issue.suggested_fix or f"Fix this problem: {issue.finding}"
        notes.append((case.name, issue.severity.value, instruction))
    severities = {case.name: case.worst[1].severity.value for case in cases}
    details = {case.name: _details(case.worst[1]) for case in cases}
    return format_work_order(edits, notes, severities, details) if cases else ""


def _details(issue: CritiqueIssue) -> dict[str, str]:
    """Returns what an agent has to know about an issue besides what to do about it."""
    finding = issue.finding if issue.edit or issue.suggested_fix else ""
    fix = issue.suggested_fix if issue.edit else ""
    return {
        "problem": finding,
        "impact": issue.impact,
        "fix": fix or "",
        "quote": issue.evidence,
        "rule": issue.rule_id,
        "location": issue.location,
    }
