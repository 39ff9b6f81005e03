"""Holds a final approval to all findings, not only to those that the judge had to decide about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from signoff.review.adjudication import Adjudication, AdjudicationDecision, Verdict
from signoff.review.artifact import ArtifactVersion
from signoff.review.finding import Finding
from signoff.review.findings import Ledger
from signoff.review.ledger_update import find_unchanged
from signoff.review.severity import Severity


@dataclass(frozen=True)
class CheckedApproval:
    """An approval after it was compared with the ledger."""

    verdict: Adjudication
    """The approval, or a rewrite if a blocking finding is still there."""
    unread: tuple[Finding, ...] = ()
    """Blocking findings whose passage has changed, but which no critic has checked since."""


def check_approval(
    approval: Adjudication,
    ledger: Ledger,
    artifact: str | Mapping[str, str] | ArtifactVersion,
    block_on: Sequence[Severity],
) -> CheckedApproval:
    """Returns an approval that holds, or a rewrite that pursues what still blocks it."""
    version = ArtifactVersion.of(artifact)
    still_open = ledger.open(block_on)
    unchanged = find_unchanged(still_open, version)
    if not unchanged:
        return CheckedApproval(approval, tuple(still_open))
    names = ", ".join(f"{each.id} ({each.severity.value})" for each in unchanged)
    note = f"it cannot pass while these findings are open and nothing was changed: {names}"
    decided = {decision.finding_id for decision in approval.decisions}
    pursued = tuple(_pursue(each) for each in unchanged if each.id not in decided)
    overruled = replace(
        approval,
        status=Verdict.REWRITE,
        stated=Verdict.APPROVED,
        decisions=(*approval.decisions, *pursued),
        notes=(*approval.notes, note),
    )
    return CheckedApproval(overruled)


def _pursue(finding: Finding) -> AdjudicationDecision:
    return AdjudicationDecision(
        finding.id,
        constraint=finding.constraint,
        severity=finding.severity,
        flagged_by=finding.flagged_by,
        finding_id=finding.id,
    )
