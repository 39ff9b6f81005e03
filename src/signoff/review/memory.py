"""What is known about findings from earlier rounds, in one line each, for critics and judges."""

from __future__ import annotations

from collections.abc import Iterable

from signoff.core.one_line import one_line
from signoff.review.adjudication import Adjudication, Verdict
from signoff.review.finding import Finding, FindingStatus
from signoff.review.findings import Ledger
from signoff.review.severity import Severity

MOST_KNOWN = 30
"""Findings that are listed: open ones first, the most severe of them first."""
LONGEST_QUOTE = 160
LONGEST_TEXT = 240

_ORDER = (
    FindingStatus.OPEN,
    FindingStatus.DISMISSED,
    FindingStatus.IGNORED,
    FindingStatus.FIXED,
)


def known_findings(ledger: Ledger, constraint: str | None = None) -> list[str]:
    """Returns what earlier rounds know about a constraint, or about all of them.

    Findings that were set aside without a reason of their own, such as a behavior, are left out.
    """
    findings = [
        finding
        for finding in ledger.findings.values()
        if constraint in (None, finding.constraint)
        and (finding.status is not FindingStatus.IGNORED or finding.reason)
    ]
    return list(_lines(sorted(findings, key=_importance)))


def earlier_findings(ledger: Ledger, iteration: int) -> list[str]:
    """Returns what a judge should know: findings of earlier rounds, and what came of each."""
    earlier = {
        finding.id: finding for finding in ledger.findings.values() if finding.first < iteration
    }
    return known_findings(Ledger(earlier, ledger.iteration))


def held_back_by(
    last: Adjudication | None, iteration: int, block_on: Iterable[Severity]
) -> list[str]:
    """Returns the findings that held an approval of an earlier round back, as KNOWN names them."""
    if last is None or last.iteration >= iteration or last.stated is not Verdict.APPROVED:
        return []
    return [f"{each.finding_id} ({each.severity.value})" for each in last.pursued(block_on)]


def _importance(finding: Finding) -> tuple[int, int, int]:
    return _ORDER.index(finding.status), finding.severity.rank, -finding.last


def _lines(findings: Iterable[Finding]) -> Iterable[str]:
    for number, finding in enumerate(findings):
        if number == MOST_KNOWN:
            yield "and more, which are older or less severe"
            return
        yield _line(finding)


def _line(finding: Finding) -> str:
    rule = f"/{one_line(finding.rule, 80)}" if finding.rule not in ("", finding.constraint) else ""
    line = (
        f"{finding.id} [{finding.constraint}{rule}, {finding.severity.value}, {_status(finding)}] "
        f"{_passage(finding)}{one_line(finding.finding, LONGEST_TEXT)}"
    )
    if finding.reason:
        line += f" Reason: {one_line(finding.reason, LONGEST_TEXT)}"
    if finding.decision:
        line += f" A human decided: {one_line(finding.decision, LONGEST_TEXT)}"
    return line


def _passage(finding: Finding) -> str:
    """Returns where to look; nothing for a fixed finding, whose words are gone."""
    if finding.status is FindingStatus.FIXED:
        return ""
    if finding.omission:
        return "something missing: "
    return f'"{one_line(finding.quote, LONGEST_QUOTE)}": '


def _status(finding: Finding) -> str:
    match finding.status:
        case FindingStatus.OPEN:
            return f"open since round {finding.first}"
        case FindingStatus.IGNORED:
            return "set aside"
        case other:
            return other.value
