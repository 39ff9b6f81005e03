"""Tests of the report on a flow's run."""

from typing import Any

from signoff.core.severity import Severity
from signoff.review.flow.end_view import LONGEST_WARNING, MOST_FINDINGS, MOST_WARNINGS, report
from signoff.review.pure.critique import Critique, CritiqueIssue, Overall
from signoff.review.pure.findings import Ledger, summarize_round


def after(*rounds: int) -> dict[str, Any]:
    """Returns the state after rounds with so many issues each."""
    ledger, summaries = Ledger(), []
    for iteration, found in enumerate(rounds, 1):
        issues = tuple(
            CritiqueIssue(
                f"style-{n}",
                "short",
                Severity.CRITICAL if n == found - 1 else Severity.LOW,
                finding=f"Sentence {n}\nis \x1b[31mtoo long" + " indeed" * 40,
                evidence=f"words number {n} of {n * 7919}",
            )
            for n in range(found)
        )
        critique = Critique("style", "claude", iteration, Overall.FAIL, issues)
        ledger, _ = ledger.record(
            iteration=iteration, critiques=[critique], artifact=str(iteration)
        )
        summaries.append(summarize_round(ledger, iteration))
    return {"rounds": summaries, "findings": ledger.to_json()}


def test_open_findings_are_listed_the_worst_first_and_bounded() -> None:
    """A hundred findings must not push the next command off the screen."""
    flow_report = report(after(100), {})

    lines = [line for line in flow_report.details.splitlines() if " style/short: " in line]
    assert len(lines) == MOST_FINDINGS
    assert lines[0].startswith("  CRITICAL style/short: Sentence 99 is")
    assert all(len(line) < 150 for line in lines)
    assert flow_report.details.endswith("  ... and 88 more")


def test_programs_get_every_finding_and_every_round() -> None:
    """A dashboard draws its own plot."""
    flow_report = report(after(3, 1), {})

    assert [each["round"] for each in flow_report.facts["rounds"]] == [1, 2]
    assert len(flow_report.facts["findings"]) == 3
    assert {each["status"] for each in flow_report.facts["findings"]} == {"still_open", "fixed"}


def test_the_latest_warnings_are_listed_and_cut() -> None:
    """The warnings of twenty rounds must not fill the screen."""
    warnings = [
        {"round": n, "step": "review", "text": f"{n} \x1b[31m" + "wrong " * 60}
        for n in range(1, MOST_WARNINGS + 4)
    ]

    flow_report = report({"remarks": warnings}, {})

    first, left, *lines = flow_report.details.splitlines()
    assert first == f"warnings: {MOST_WARNINGS + 3}"
    assert left == "  ... and 3 earlier, in the JSON output"
    assert len(lines) == MOST_WARNINGS
    assert lines[0].startswith("  4 review: 4 ")
    assert all(len(line) <= LONGEST_WARNING + 20 for line in lines)
    assert flow_report.facts == {"remarks": warnings}
