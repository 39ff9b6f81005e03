"""What the rules say of a judge's answer, and the judge that is nothing but the rules.

A judge may dismiss and explain. Severities, who found what and the count of what is left
come from the critiques, and an approval has to survive them.
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
    """Returns what stands of a judge's answer: one decision for every finding, and why."""
    docket = _docket(critiques)
    notes: list[str] = []
    said = _assigned(adjudication.decisions, docket, notes)
    decisions = tuple(_decision(case, said.get(case.key, []), notes) for case in docket)
    checked = replace(adjudication, decisions=decisions)
    blocking = checked.pursued(block_on)
    if checked.status is Verdict.APPROVED and blocking:
        named = ", ".join(f"{each.issue_id} ({each.severity.value})" for each in blocking)
        notes.append(f"APPROVED does not stand while this is pursued: {named}")
        checked = replace(checked, status=Verdict.REWRITE, stated=Verdict.APPROVED)
    if checked.status is Verdict.REWRITE and not checked.pursued():
        notes.append("the judge asks for a rewrite and pursues nothing")
    return replace(checked, notes=(*checked.notes, *notes))


def policy_judge(
    critiques: Sequence[Critique],
    *,
    iteration: int,
    block_on: Sequence[Severity] = DEFAULT_BLOCK_ON,
) -> Adjudication:
    """Returns the verdict of the rules alone: everything is pursued, nothing is asked."""
    docket = _docket(critiques)
    decisions = tuple(
        replace(_decision(case, [], []), guidance=case.worst[1].suggested_fix) for case in docket
    )
    judged = Adjudication(iteration, Verdict.REWRITE, decisions, bill_of_work=_bill(docket))
    blocked = judged.pursued(block_on)
    return judged if blocked else replace(judged, status=Verdict.APPROVED)


def conflicting_criticals(adjudication: Adjudication) -> list[AdjudicationDecision]:
    """Returns the critical decisions that pull apart: several, and one names its rival."""
    critical = adjudication.pursued([Severity.CRITICAL])
    rivals = any(each.competing_constraint for each in critical)
    return critical if len(critical) > 1 and rivals else []


def for_judge(critiques: Sequence[Critique]) -> list[Critique]:
    """Returns what a judge is shown: every critique, without the issues that are set aside."""
    return [
        replace(each, issues=tuple(issue for issue in each.issues if not is_set_aside(issue)))
        for each in critiques
    ]


@dataclass(frozen=True)
class _Case:
    """One finding a judge has to decide about, with everything critics said of it."""

    key: str
    name: str
    """What it is called in the verdict: its issue's id, unless two findings share that."""
    reports: tuple[tuple[Critique, CritiqueIssue], ...]

    @property
    def worst(self) -> tuple[Critique, CritiqueIssue]:
        return min(self.reports, key=lambda each: each[1].severity.rank)

    @property
    def critics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(critique.reviewer for critique, _ in self.reports))

    @property
    def names(self) -> set[str]:
        """What a judge may call it."""
        return {self.key, self.name, *(issue.id for _, issue in self.reports)}


def _docket(critiques: Sequence[Critique]) -> list[_Case]:
    """Returns the findings to decide about; what several critics report is one of them."""
    reports: dict[str, list[tuple[Critique, CritiqueIssue]]] = {}
    for critique in for_judge(critiques):
        for issue in critique.issues:
            key = issue.finding_id or f"{critique.constraint_id}/{critique.reviewer}/{issue.id}"
            reports.setdefault(key, []).append((critique, issue))
    names = {key: found[0][1].id for key, found in reports.items()}
    shared = Counter(names.values())
    return [
        _Case(key, key if shared[names[key]] > 1 else names[key], tuple(found))
        for key, found in reports.items()
    ]


def _assigned(
    decisions: Sequence[AdjudicationDecision], docket: Sequence[_Case], notes: list[str]
) -> dict[str, list[AdjudicationDecision]]:
    """Returns the judge's decisions by finding; those that fit none are noted and dropped."""
    called: dict[str, list[_Case]] = {}
    for case in docket:
        for name in case.names:
            called.setdefault(name, []).append(case)
    said: dict[str, list[AdjudicationDecision]] = {}
    for decision in decisions:
        meant = _meant(decision, called)
        if not meant:
            notes.append(f"{decision.issue_id}: decided by the judge, reported by nobody; dropped")
        if len(meant) > 1 and decision.status is Pursuit.DISMISSED:
            names = ", ".join(case.name for case in meant)
            notes.append(f"{decision.issue_id}: may mean any of {names}; none is dismissed by it")
            continue
        for case in meant:
            said.setdefault(case.key, []).append(decision)
    return said


def _meant(
    decision: AdjudicationDecision, called: Mapping[str, Sequence[_Case]]
) -> Sequence[_Case]:
    """Returns the findings a decision may be about; a lasting id is exact, another may not be."""
    meant = called.get(decision.finding_id) or called.get(decision.issue_id, ())
    if len(meant) > 1 and decision.constraint:
        meant = [c for c in meant if c.worst[0].constraint_id == decision.constraint] or meant
    if len(meant) > 1 and decision.flagged_by:
        meant = [c for c in meant if set(c.critics) & set(decision.flagged_by)] or meant
    return meant


def _decision(
    case: _Case, said: Sequence[AdjudicationDecision], notes: list[str]
) -> AdjudicationDecision:
    """Returns what is decided of a finding: in doubt, it is pursued."""
    critique, issue = case.worst
    pursuing = [each for each in said if each.status is Pursuit.PURSUING]
    if pursuing and len(pursuing) < len(said):
        notes.append(f"{case.name}: both pursued and dismissed by the judge; pursued")
    chosen = (*pursuing, *said, AdjudicationDecision(case.name))[0]
    if any(each.severity.rank > issue.severity.rank for each in said):
        notes.append(f"{case.name}: stays {issue.severity.value}, as its critics said")
    return replace(
        chosen,
        issue_id=case.name,
        constraint=critique.constraint_id,
        severity=issue.severity,
        flagged_by=case.critics,
        finding_id=issue.finding_id,
    )


def _bill(docket: Sequence[_Case]) -> str:
    from signoff.review.work_order import format_work_order

    edits: list[Edit] = []
    notes: list[tuple[str, str, str]] = []
    for case in sorted(docket, key=lambda each: each.worst[1].severity.rank):
        literal = dict.fromkeys(issue.edit for _, issue in case.reports if issue.edit)
        if literal:
            edits.extend(replace(edit, issue=case.name) for edit in literal)
            continue
        _, issue = case.worst
        notes.append((case.name, issue.severity.value, issue.suggested_fix or issue.finding))
    severities = {case.name: case.worst[1].severity.value for case in docket}
    return format_work_order(edits, notes, severities) if docket else ""
