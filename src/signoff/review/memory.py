"""What is known about findings from earlier rounds, in one line each, for critics and judges."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from signoff.core.one_line import one_line
from signoff.core.words import FindingStatus
from signoff.review.adjudication import Adjudication, Verdict
from signoff.review.finding import Finding
from signoff.review.findings import Ledger
from signoff.review.review_scope import SEPARATOR
from signoff.review.severity import Severity

MOST_KNOWN = 30
"""Findings that are listed: open ones first, the most severe of them first."""
MOST_NAMED = 10
"""Ids that an entry about equal passages lists."""
LONGEST_QUOTE = 160
LONGEST_TEXT = 240

_ORDER = (
    FindingStatus.OPEN,
    FindingStatus.ADDRESSED,
    FindingStatus.DISMISSED,
    FindingStatus.IGNORED,
    FindingStatus.FIXED,
)


def known_findings(
    ledger: Ledger, constraint: str, *, qualified: bool, paths: Collection[str] = ()
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
    return _listed(findings, partial(_line, qualified=qualified), lambda _: "")


def earlier_findings(ledger: Ledger, iteration: int) -> list[str]:
    """Returns what a judge should know: findings of earlier rounds, and what came of each."""
    findings = [finding for finding in ledger.findings.values() if finding.first < iteration]
    return _listed(findings, partial(_line, qualified=True), lambda finding: finding.id)


def held_back_by(
    last: Adjudication | None, iteration: int, block_on: Iterable[Severity]
) -> list[str]:
    """Returns the findings that held an approval of an earlier round back, as KNOWN names them."""
    if last is None or last.round >= iteration or last.stated is not Verdict.APPROVED:
        return []
    return [f"{each.finding_id} ({each.severity.value})" for each in last.pursued(block_on)]


def _importance(finding: Finding) -> tuple[int, int, int]:
    return _ORDER.index(finding.status), finding.severity.rank, -finding.last


def _listed(
    findings: Iterable[Finding], line: Callable[[Finding], str], name: Callable[[Finding], str]
) -> list[str]:
    """Returns the most important findings; those with the same words are one entry with a count.

    Those that were set aside without a reason of their own, such as a behavior, are left out.
    """
    known = [each for each in findings if each.status is not FindingStatus.IGNORED or each.reason]
    equal: dict[tuple[str, str], list[Finding]] = {}
    for each in sorted(known, key=_importance):
        equal.setdefault((each.path, line(each)), []).append(each)
    lines = [
        " ".join(filter(None, [_names(group, name), text, _count(group)]))
        for (_, text), group in [*equal.items()][:MOST_KNOWN]
    ]
    more = len(equal) > MOST_KNOWN
    return [*lines, "and more, which are older or less severe"] if more else lines


def _names(group: Sequence[Finding], name: Callable[[Finding], str]) -> str:
    names = [text for text in map(name, group[:MOST_NAMED]) if text]
    more = [f"and {len(group) - MOST_NAMED} more"] if names and len(group) > MOST_NAMED else []
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
