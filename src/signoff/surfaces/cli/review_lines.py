"""A review in lines: findings as compilers print errors, what became of them, and diffs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from signoff.core.amounts import count
from signoff.core.severity import IssueBehavior, Severity
from signoff.core.words import FindingStatus, Label
from signoff.review.pure.diff import DiffHunk
from signoff.review.pure.finding import Finding, describe_equal, group_equal
from signoff.review.pure.history import (
    ReviewHistory,
    describe_status,
    labels_by_round,
)
from signoff.surfaces.cli.output import clean, one_line

MOST_PER_ROUND = 12
"""Findings that `show` lists for each round; the others are counted."""
LONGEST_QUOTE = 300
"""Characters of a quote below its finding."""

COLUMNS = ("ROUND", "STATUS", "SEVERITY", "ID", "CONSTRAINT", "PLACE", "FINDING")
SPARE = ("PLACE", "ID", "CONSTRAINT")
"""The columns of the findings by round, and those that a narrow terminal does without."""

DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan", "\\": "dim"}
"""The color of a line of a diff, by its first character."""


def severity_style(severity: Severity) -> str:
    """Returns the color of a severity."""
    if severity.defaults.blocks:
        return "red"
    return "dim" if severity.defaults.behavior is IssueBehavior.IGNORE else "yellow"


def finding_lines(history: ReviewHistory, group: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    """Yields the lines of a finding, or of several equal ones, each with its color.

    The first line is the one that compilers print, so that editors can jump to it.
    """
    finding = group[0]
    rule = f"{finding.constraint}/{finding.rule}" if finding.rule else finding.constraint
    doubt = " (unverified)" if finding.unverified else ""
    head = f"{history.place(finding)}: {finding.severity} {rule}{doubt}"
    style = severity_style(finding.severity) if finding.status is FindingStatus.OPEN else "dim"
    yield f"{head}: {one_line(finding.finding)}", style
    if not finding.omission:
        yield f'    "{one_line(finding.quote, LONGEST_QUOTE)}"', ""
    if finding.suggested_fix:
        yield f"    suggested fix: {one_line(finding.suggested_fix, LONGEST_QUOTE)}", ""
    yield f"    {finding.id}  {outcome(history, finding)}", "dim"
    if len(group) > 1:
        yield f"    {describe_equal(group)}", "dim"


def outcome(history: ReviewHistory, finding: Finding) -> str:
    """Returns what became of a finding, by whom and why."""
    words, judgment = describe_status(finding), history.dismissals.get(finding.id)
    if finding.status is FindingStatus.DISMISSED and judgment is not None:
        words += f" by {judgment.by}"
    reason = finding.reason or finding.decision
    return f"{words}: {one_line(reason, LONGEST_QUOTE)}" if reason else words


def totals(findings: Sequence[Finding]) -> str:
    """Returns how many findings there are, and how many of each status."""
    counts = {s: sum(each.status is s for each in findings) for s in FindingStatus}
    parts = ", ".join(f"{number} {status.words}" for status, number in counts.items() if number)
    return f"{count(len(findings), 'finding')}{parts and f': {parts}'}"


def round_rows(history: ReviewHistory) -> Iterator[tuple[object, ...]]:
    """Yields a row for each finding whose status a round has changed, and how many stayed open."""
    for number, entries in labels_by_round(history).items():
        changed = [entry for entry in entries if entry[1] is not Label.STILL_OPEN]
        groups = group_equal(changed, lambda entry: (entry[0].entry, entry[1]))
        for (finding, label), *equal in groups[:MOST_PER_ROUND]:
            place = history.place(finding)
            about = (finding.severity.value, finding.id, finding.constraint, place)
            times = f"{len(equal) + 1:,} times: " if equal else ""
            yield number, label.words, *about, f"{times}{one_line(finding.finding)}"
        left = [label for group in groups[MOST_PER_ROUND:] for _, label in group]
        if left:
            labels = ", ".join(
                f"{left.count(label)} {label.words}" for label in dict.fromkeys(left)
            )
            yield number, "more", "", "", "", "", labels
        stayed = len(entries) - len(changed)
        if stayed:
            yield number, Label.STILL_OPEN.words, "", "", "", "", count(stayed, "finding")


def hunk_lines(history: ReviewHistory, hunk: DiffHunk) -> Iterator[tuple[str, str]]:
    """Yields the lines of a hunk; its header names the findings that it answers."""
    by_id = {each.id: each for each in history.findings}
    answered = [f"{i} ({by_id[i].constraint})" if i in by_id else i for i in hunk.findings]
    label = f"answers {', '.join(answered)}" if answered else "answers no finding"
    yield f"{hunk.header} {label}", DIFF_STYLES["@"]
    for line in hunk.lines:
        yield clean(line), DIFF_STYLES.get(line[:1], "")
