"""Tells the story of a flow's run: what was open after each round, and what still is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from signoff.flows.state import UNREVIEWED, FlowState
from signoff.review.findings import Finding, Ledger
from signoff.review.plot import draw_plot

MOST_FINDINGS = 12
"""Open findings listed, the worst first; the rest is counted."""

MOST_REMARKS = 8
"""Remarks listed, the latest ones."""

LONGEST_REMARK = 160
"""Characters of a remark that a list repeats."""

MOST_WORDS = 100
"""Characters of a finding that a list repeats."""


@dataclass(frozen=True)
class FlowReport:
    """What people and programs are told of a run beyond its steps and its cost."""

    summary: str = ""
    """For the end of a run; empty where one round says it all."""
    details: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """For programs, by name."""


def report(state: Mapping[str, Any]) -> FlowReport:
    """Returns the story a run's state tells."""
    rounds = list(state.get("rounds") or ())
    ledger = Ledger.from_json(state.get("findings") or {})
    facts: dict[str, Any] = {}
    if rounds:
        facts["rounds"] = rounds
    remarks = list(state.get("remarks") or ())
    if remarks:
        facts["remarks"] = remarks
    if ledger.findings:
        facts["findings"] = [each.to_json() for each in ledger.findings.values()]
    plot = draw_plot(rounds) if rounds else ""
    several = len(rounds) > 1
    parts = [] if several or not plot else [plot]
    parts += [*_listed(ledger.open()), *_remarked(remarks)]
    ending = [plot] if several else []
    if not FlowState(state).reviewed:
        ending.append(UNREVIEWED)
    return FlowReport("\n".join(ending), "\n".join(parts), facts)


def _listed(found: list[Finding]) -> list[str]:
    if not found:
        return []
    lines = [f"open findings: {len(found)}", *map(_line, found[:MOST_FINDINGS])]
    left = len(found) - MOST_FINDINGS
    return [*lines, f"  ... and {left} more"] if left > 0 else lines


def _remarked(remarks: list[Mapping[str, Any]]) -> list[str]:
    """Returns the latest remarks, oldest first, with the iteration and the step of each."""
    if not remarks:
        return []
    lines = [
        f"  {each['iteration']} {each['step']}: {_short(each['text'], LONGEST_REMARK)}"
        for each in remarks
    ]
    left = len(lines) - MOST_REMARKS
    before = [f"  ... {left} earlier, in the JSON form"] if left > 0 else []
    return [f"remarks: {len(remarks)}", *before, *lines[-MOST_REMARKS:]]


def _line(finding: Finding) -> str:
    short = _short(finding.finding, MOST_WORDS)
    doubt = " (unverified)" if finding.unverified else ""
    return f"  [{finding.severity.value}] {finding.id} {finding.constraint}{doubt}: {short}"


def _short(text: str, width: int) -> str:
    words = " ".join(text.split())
    return words if len(words) <= width else f"{words[: width - 1]}…"
