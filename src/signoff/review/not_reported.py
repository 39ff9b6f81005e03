"""Open findings that critics did not report again, for the judge to decide about.

A critic that leaves out a finding has overlooked it, or no longer thinks that it is one. The
passage is as it was, so only a judge can tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from signoff.core.words import FindingStatus
from signoff.review.critique import Critique, CritiqueIssue
from signoff.review.finding import Finding
from signoff.review.findings import Ledger


def with_not_reported(critiques: Sequence[Critique], ledger: Ledger) -> list[Critique]:
    """Returns critiques with the findings that their critics reported before, but not again."""
    added: dict[int, list[CritiqueIssue]] = {}
    reported = {issue.finding_id for critique in critiques for issue in critique.issues}
    for finding in ledger.findings.values():
        is_open = finding.status is FindingStatus.OPEN
        if not (is_open and finding.not_reported_again) or finding.id in reported:
            continue
        for position in _critiques_of(finding, critiques):
            added.setdefault(position, []).append(issue_of(finding))
    return [
        replace(critique, issues=(*critique.issues, *added.get(position, ())))
        for position, critique in enumerate(critiques)
    ]


def issue_of(finding: Finding) -> CritiqueIssue:
    """Returns a finding as an issue, in the words of its last report."""
    return CritiqueIssue(
        id=finding.id,
        rule_id=finding.rule,
        severity=finding.severity,
        location=finding.location,
        finding=finding.finding,
        evidence=finding.quote,
        suggested_fix=finding.suggested_fix or None,
        finding_id=finding.id,
        label=finding.label,
        not_reported_again=finding.not_reported_again,
        unverified=finding.unverified,
        path=finding.path,
        line=finding.line,
    )


def _critiques_of(finding: Finding, critiques: Sequence[Critique]) -> list[int]:
    """Returns the positions of the critiques it belongs to: those of its critics, or the first."""
    same = [
        n
        for n, each in enumerate(critiques)
        if each.constraint_id == finding.constraint and finding.path in each.files_read
    ]
    return [n for n in same if critiques[n].reviewer in finding.flagged_by] or same[:1]
