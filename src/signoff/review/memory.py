"""What is known about findings from earlier rounds, in one line each, for critics and judges."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from signoff.core.one_line import one_line
from signoff.core.severity import Severity
from signoff.core.words import FindingStatus
from signoff.review.adjudication import Adjudication, Verdict
from signoff.review.finding import (
    LISTED,
    MOST_EQUAL,
    Finding,
    blocking_first,
    group_equal,
)
from signoff.review.findings import Ledger
from signoff.review.review_scope import SEPARATOR

MOST_KNOWN = 30
"""Entries that are listed, what blocks first."""
LONGEST_QUOTE = 160
LONGEST_TEXT = 240


def known_findings(
    ledger: Ledger,
    constraint: str,
    block_on: Collection[Severity],
    *,
    qualified: bool,
    paths: Collection[str] = (),
) -> list[str]:
    """Returns what earlier rounds know about a constraint, for its critic.

    Rules are named as the prompt lists them: with their constraint if they are `qualified`. A
    critic has no use for the ids of findings, because its answer does not name any. A critic of
    files gets what is known about these.
    """
    findings = [
        each
        for each in ledger.findings.values()
        if each.constraint == constraint and each.path in (paths or ("",))
    ]
    return _listed(findings, block_on, partial(_line, qualified=qualified), lambda _: "")


def earlier_findings(ledger: Ledger, iteration: int, block_on: Collection[Severity]) -> list[str]:
    """Returns what a judge should know: findings of earlier rounds, and what came of each."""
    findings = [finding for finding in ledger.findings.values() if finding.first < iteration]
    return _listed(findings, block_on, partial(_line, qualified=True), lambda each: each.id)


def held_back_by(
    last: Adjudication | None, iteration: int, block_on: Iterable[Severity]
) -> list[str]:
    """Returns the findings that held an approval of an earlier round back, as KNOWN names them."""
    if last is None or last.round >= iteration or last.stated is not Verdict.APPROVED:
        return []
    return [f"{each.finding_id} ({each.severity.value})" for each in last.pursued(block_on)]


def _listed(
    findings: Iterable[Finding],
    block_on: Collection[Severity],
    line: Callable[[Finding], str],
    name: Callable[[Finding], str],
) -> list[str]:
    """Returns findings in the order of a list; those with the same words are one entry.

    Those that were set aside without a reason of their own, such as a behavior, are left out.
    """
    known = [each for each in findings if each.status is not FindingStatus.IGNORED or each.reason]
    in_order = sorted(known, key=blocking_first(block_on))
    # The list is cut: what was dismissed matters more to a critic than what was fixed.
    in_order.sort(key=lambda each: LISTED.index(each.status))
    groups = group_equal(in_order, lambda each: (each.path, line(each)))
    lines = [
        " ".join(filter(None, [_names(group, name), line(group[0]), _count(group)]))
        for group in groups[:MOST_KNOWN]
    ]
    left = sum(map(len, groups[MOST_KNOWN:]))
    return [*lines, f"and {left:,} more"] if left else lines


def _names(group: Sequence[Finding], name: Callable[[Finding], str]) -> str:
    names = [text for text in map(name, group[:MOST_EQUAL]) if text]
    more = [f"and {len(group) - MOST_EQUAL} more"] if names and len(group) > MOST_EQUAL else []
    return " ".join([", ".join(names), *more])


def _count(group: Sequence[Finding]) -> str:
    return f"({len(group)} equal passages)" if len(group) > 1 else ""


def _line(finding: Finding, *, qualified: bool) -> str:
    line = (
        f"[{_rule(finding, qualified=qualified)}, {finding.severity.value}, {_status(finding)}] "
        f"{_passage(finding)}{one_line(finding.finding, LONGEST_TEXT)}"
    )
    if finding.reason:
        line += f" Reason: {one_line(finding.reason, LONGEST_TEXT)}"
    if finding.decision:
        line += f" A human decided: {one_line(finding.decision, LONGEST_TEXT)}"
    return line


def _rule(finding: Finding, *, qualified: bool) -> str:
    if finding.rule in ("", finding.constraint):
        return finding.constraint
    rule = one_line(finding.rule, 80)
    return f"{finding.constraint}{SEPARATOR}{rule}" if qualified else rule


def _passage(finding: Finding) -> str:
    """Returns where to look, or for a fixed finding, what was there."""
    if finding.omission:
        return "something missing: "
    was = "was " if finding.status is FindingStatus.FIXED else ""
    return f'{was}"{one_line(finding.quote, LONGEST_QUOTE)}": '


def _status(finding: Finding) -> str:
    match finding.status:
        case FindingStatus.OPEN:
            silent = ", not reported again" if finding.not_reported_again else ""
            return f"open since round {finding.first}{silent}"
        case FindingStatus.IGNORED:
            return "set aside"
        case other:
            return other.value
