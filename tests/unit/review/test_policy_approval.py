"""A final approval is held to all findings."""

from dataclasses import replace
from typing import Any

import pytest

from signoff.core.severity import Severity
from signoff.core.words import FindingStatus
from signoff.review.adjudication import Adjudication, AdjudicationDecision, Pursuit, Verdict
from signoff.review.artifact import version_digest
from signoff.review.finding import Finding
from signoff.review.findings import Ledger
from signoff.review.policy import check_approval

TEXT = "The see is wide.\n"
APPROVAL = Adjudication(1, Verdict.APPROVED)
BLOCKING = (Severity.CRITICAL, Severity.HIGH)


def ledger(**fields: Any) -> Ledger:
    """Returns a ledger with one finding about the text."""
    finding = Finding("f1", "clear", "r", Severity.HIGH, "The see", "", "misspelled")
    return Ledger({"f1": replace(finding, artifact=version_digest(TEXT), **fields)}, 1)


@pytest.mark.parametrize("quote", ["The see", "OMISSION"])
def test_an_open_finding_blocks(quote: str) -> None:
    """It is pursued, so that the next round is about it."""
    verdict = check_approval(APPROVAL, ledger(quote=quote), BLOCKING)

    assert (verdict.status, verdict.stated) == (Verdict.REWRITE, Verdict.APPROVED)
    assert [each.finding_id for each in verdict.pursued()] == ["f1"]
    assert "f1 (HIGH)" in verdict.notes[-1]


@pytest.mark.parametrize(
    "fields",
    [
        {"status": FindingStatus.FIXED},
        {"status": FindingStatus.DISMISSED},
        {"status": FindingStatus.IGNORED},
        {"severity": Severity.LOW},
    ],
)
def test_findings_that_are_closed_or_minor_do_not_block(fields: dict[str, Any]) -> None:
    """Only open findings of a blocking severity do."""
    assert check_approval(APPROVAL, ledger(**fields), BLOCKING) == APPROVAL


def test_a_finding_that_the_judge_decided_about_is_not_listed_twice() -> None:
    """The judge saw only a minor report of a finding that another critic calls severe."""
    decision = AdjudicationDecision("clear-001", status=Pursuit.PURSUING, finding_id="f1")
    approval = replace(APPROVAL, decisions=(decision,))

    verdict = check_approval(approval, ledger(), BLOCKING)

    assert verdict.status is Verdict.REWRITE
    assert verdict.decisions == (decision,)
