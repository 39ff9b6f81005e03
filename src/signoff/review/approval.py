"""Holds a final approval to all findings, not only to those that the judge had to decide about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from signoff.review.adjudication import Adjudication, AdjudicationDecision, Verdict
from signoff.review.finding import Finding
from signoff.review.findings import Ledger
from signoff.review.severity import Severity


def check_approval(
    approval: Adjudication, ledger: Ledger, block_on: Sequence[Severity]
) -> Adjudication:
    """Returns an approval that holds, or a rewrite that pursues the open findings that block it."""
    still_open = [each for each in ledger.open(block_on) if each.severity in block_on]
    if not still_open:
        return approval
    names = ", ".join(f"{each.id} ({each.severity.value})" for each in still_open)
    note = f"it cannot pass while these findings are open: {names}"
    decided = {decision.finding_id for decision in approval.decisions}
    pursued = tuple(_pursue(each) for each in still_open if each.id not in decided)
    return replace(
        approval,
        status=Verdict.REWRITE,
        stated=Verdict.APPROVED,
        decisions=(*approval.decisions, *pursued),
        notes=(*approval.notes, note),
    )


def _pursue(finding: Finding) -> AdjudicationDecision:
    return AdjudicationDecision(
        finding.id,
        constraint=finding.constraint,
        severity=finding.severity,
        flagged_by=finding.flagged_by,
        finding_id=finding.id,
    )
