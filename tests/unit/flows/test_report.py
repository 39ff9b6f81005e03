"""Tests of the story a flow's run tells."""

from typing import Any

from signoff.flows.report import LONGEST_WARNING, MOST_FINDINGS, MOST_WARNINGS, report
from signoff.review.critique import Critique, CritiqueIssue, Overall
from signoff.review.findings import Ledger, summarize_round
from signoff.review.severity import Severity


def after(*rounds: int) -> dict[str, Any]:
    """Returns the state after rounds that found so many issues each."""
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
        ledger, _ = ledger.record(iteration=iteration, critiques=[critique], artifact="")
        summaries.append(summarize_round(ledger, iteration))
    return {"rounds": summaries, "findings": ledger.to_json()}


def test_several_rounds_are_told_as_a_plot() -> None:
    """Whether the loop gets anywhere is the first thing people want to see."""
    told = report(after(5, 3, 1))

    assert "round" in told.summary
    assert len(told.summary.splitlines()) == 4
    assert "round" not in told.details


def test_a_single_round_needs_no_plot_at_its_end() -> None:
    """But whoever asks is shown it."""
    told = report(after(2))

    assert told.summary == ""
    assert "round" in told.details


def test_open_findings_are_listed_the_worst_first_and_bounded() -> None:
    """A hundred findings must not push the next command off the screen."""
    told = report(after(100))

    lines = [line for line in told.details.splitlines() if line.startswith("  [")]
    assert len(lines) == MOST_FINDINGS
    assert lines[0].startswith("  [CRITICAL] ")
    assert "style: Sentence 99 is" in lines[0]
    assert all(len(line) < 150 for line in lines)
    assert told.details.endswith("  ... and 88 more")


def test_programs_get_every_finding_and_every_round() -> None:
    """A dashboard draws its own plot."""
    told = report(after(3, 1))

    assert [each["iteration"] for each in told.facts["rounds"]] == [1, 2]
    assert len(told.facts["findings"]) == 3
    assert {each["status"] for each in told.facts["findings"]} == {"open", "fixed"}


def test_a_run_that_has_reviewed_nothing_has_nothing_to_tell() -> None:
    """It is looked at while its first draft is being written, too."""
    told = report({})

    assert (told.summary, told.details, told.facts) == ("", "", {})


def test_remarks_are_listed_the_latest_ones_and_short() -> None:
    """What a critic got wrong in twenty rounds must not fill the screen."""
    remarks = [
        {"iteration": n, "step": "review", "text": f"{n} \x1b[31m" + "wrong " * 60}
        for n in range(1, MOST_WARNINGS + 4)
    ]

    told = report({"remarks": remarks})

    first, left, *lines = told.details.splitlines()
    assert first == f"warnings: {MOST_WARNINGS + 3}"
    assert left == "  ... and 3 earlier, in the JSON output"
    assert len(lines) == MOST_WARNINGS
    assert lines[0].startswith("  4 review: 4 ")
    assert all(len(line) <= LONGEST_WARNING + 20 for line in lines)
    assert told.facts == {"remarks": remarks}
