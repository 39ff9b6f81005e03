"""Summarizes a flow's run: how many findings were open after each round, and which still are."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from textwrap import wrap
from typing import Any

from signoff.core.severity import Severity
from signoff.core.words import CHANGES, Label
from signoff.flows.coverage import constraint_results
from signoff.flows.state import UNREVIEWED, FlowState, blocking_severities
from signoff.flows.steps.updates import findings_of, shortened
from signoff.notation import RunReport
from signoff.review.artifact import locate_finding
from signoff.review.finding import Finding, blocking_first, describe_equal, group_equal

MOST_FINDINGS = 12
"""Entries of open findings that are listed, what blocks first; the others are only counted."""

MOST_WARNINGS = 8
"""Warnings listed, the latest ones."""

LONGEST_WARNING = 160
"""Characters of a warning in the list."""

LONGEST_FINDING = 100
"""Characters of a finding in the list."""


def report(state: Mapping[str, Any], definition: Mapping[str, Any]) -> RunReport:
    """Returns the report on a run from its state and its definition."""
    view, block_on = FlowState(state), blocking_severities(definition)
    rounds, warnings = view.rounds, view.warnings
    listed = sorted(view.ledger.findings.values(), key=blocking_first(block_on))
    plot = [draw_plot(rounds)] if rounds else []
    several = len(rounds) > 1
    summary = [*(plot if several else []), *([] if view.reviewed else [UNREVIEWED])]
    details = [] if several else plot
    details += [*_open_lines(view, block_on), *_warning_lines(warnings)]
    return RunReport("\n".join(summary), "\n".join(details), partial(_facts, view, listed))


def _facts(view: FlowState, findings: Sequence[Finding]) -> dict[str, Any]:
    """Returns what is known about a run, with its findings in the order of a list."""
    results = constraint_results(view.raw, view.content, findings)
    facts = {
        "rounds": view.rounds,
        "remarks": view.warnings,
        "constraints": [each.to_json() for each in results],
        "findings": [each.facts() for each in findings],
    }
    return {name: values for name, values in facts.items() if values}


def _open_lines(view: FlowState, block_on: Collection[Severity]) -> list[str]:
    """Returns the open findings of the latest review and, if it was another, of the best one."""
    # The best version may be older than the latest review, so its own findings are listed first:
    # they are about the file that the user gets.
    latest = view.ledger.open(block_on)
    same = view.best is None or {f.id for f in latest} == {f["id"] for f in view.best["findings"]}
    if view.best is None or view.passed or same:
        return _finding_lines("open findings", view, latest)
    best = findings_of(view.best, view.ledger, block_on)
    where = f"open findings of the best version (round {view.best['round']})"
    return [
        *_finding_lines(where, view, best),
        *_finding_lines("open findings of the latest review", view, latest),
    ]


def _finding_lines(title: str, view: FlowState, findings: list[Finding]) -> list[str]:
    if not findings:
        return []
    groups = group_equal(findings)
    lines = [_finding_line(view, each) for each in groups[:MOST_FINDINGS]]
    lines = [f"{title}: {len(findings):,}", *lines]
    left = sum(map(len, groups[MOST_FINDINGS:]))
    return [*lines, f"  ... and {left:,} more"] if left else lines


def claim_details(quote: str, location: str, fix: str, longest: int) -> list[str]:
    """Returns what is needed to fix something by hand: the passage and the suggested fix."""
    details = {"quote": quote, "at": location, "suggested fix": fix}
    return [f"{name}: {shortened(text, longest)}" for name, text in details.items() if text]


def _finding_line(view: FlowState, group: Sequence[Finding]) -> str:
    finding = group[0]
    where = finding.location
    if finding.path:
        # In a critic's own words, a place in a file may be only `line 2`, without the file.
        found = locate_finding(view.content, finding)
        where = f"{finding.path}:{found.line}" if found is not None else finding.path
    text = shortened(finding.finding, LONGEST_FINDING)
    doubt = " (unverified)" if finding.unverified else ""
    quote = "none, something is missing" if finding.omission else finding.quote
    details = claim_details(quote, where, finding.suggested_fix, LONGEST_FINDING)
    line = f"  [{finding.severity.value}] {finding.id} {finding.constraint}{doubt}: {text}"
    details += [describe_equal(group)] if len(group) > 1 else []
    return "\n".join([line, *(f"    {each}" for each in details)])


def _warning_lines(warnings: list[Mapping[str, Any]]) -> list[str]:
    """Returns the latest warnings, oldest first, with the round and the step of each."""
    if not warnings:
        return []
    # The latest warnings are the ones about the text that the user gets.
    left = len(warnings) - MOST_WARNINGS
    earlier = [f"  ... and {left} earlier, in the JSON output"] if left > 0 else []
    lines = [
        f"  {each['round']} {each['step']}: {shortened(each['text'], LONGEST_WARNING)}"
        for each in warnings[-MOST_WARNINGS:]
    ]
    return [f"warnings: {len(warnings)}", *earlier, *lines]


BAR = 16
"""The longest row of letters; with more findings, one letter represents several (`x3`).

With its indent the plot fits a terminal of 60 columns.
"""
MOST_ROUNDS = 20
"""Rounds that are shown; of a longer run, the first and the last ones."""
_FIRST = 6
_WIDEST = 8
"""Characters of a heading; the words of a longer one stand above each other."""


def draw_plot(rounds: Sequence[Mapping[str, Any]]) -> str:
    """Returns a plot of at most 58 columns: the open findings by severity, and the changes."""
    if not rounds:
        return "no rounds were reviewed"
    # Each severity may need one more letter than its share, because even a single finding is shown.
    per_letter = max(1, -(-max(map(_total, rounds)) // (BAR - len(Severity))))
    lines = [_line(summary, per_letter) for summary in rounds]
    if len(lines) > MOST_ROUNDS:
        omitted = len(lines) - MOST_ROUNDS
        lines[_FIRST : _FIRST + omitted] = [f"  ...  {omitted} more rounds"]
    return "\n".join([*_heading(per_letter), *lines])


def _heading(per_letter: int) -> Iterator[str]:
    letters = " ".join(severity.letter for severity in Severity)
    scale = letters if per_letter == 1 else f"{letters} x{per_letter}"
    headings = [wrap(each.words, _WIDEST) for each in CHANGES]
    for left in reversed(range(max(map(len, headings)))):
        start = "" if left else f"round  open  {scale}"
        words = (each[-1 - left] if left < len(each) else "" for each in headings)
        columns = (f"{word:>{_width(each)}}" for word, each in zip(words, CHANGES, strict=True))
        yield f"{start:<{13 + BAR}}{''.join(columns)}".rstrip()


def _line(summary: Mapping[str, Any], per_letter: int) -> str:
    bar = "".join(
        severity.letter * -(-_open(summary, severity) // per_letter) for severity in Severity
    )
    columns = "".join(f"{summary.get(each) or '.':>{_width(each)}}" for each in CHANGES)
    return f"{summary['round']:>5}  {_total(summary):>4}  {bar or '-':<{BAR}}{columns}"


def _width(label: Label) -> int:
    return max(4, *map(len, wrap(label.words, _WIDEST))) + 2


def _total(summary: Mapping[str, Any]) -> int:
    return sum(_open(summary, severity) for severity in Severity)


def _open(summary: Mapping[str, Any], severity: Severity) -> int:
    return int(summary["open"].get(severity.value, 0))
