"""Tests of the report on a flow's run."""

from typing import Any

import pytest

from signoff.core.severity import Severity
from signoff.flows.report import LONGEST_WARNING, MOST_FINDINGS, MOST_WARNINGS, draw_plot, report
from signoff.review.critique import Critique, CritiqueIssue, Overall
from signoff.review.findings import Ledger, summarize_round


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

    lines = [line for line in flow_report.details.splitlines() if line.startswith("  [")]
    assert len(lines) == MOST_FINDINGS
    assert lines[0].startswith("  [CRITICAL] ")
    assert "style: Sentence 99 is" in lines[0]
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


def counted(iteration: int, critical: int, high: int, **happened: int) -> dict[str, Any]:
    return {
        "round": iteration,
        "open": {"CRITICAL": critical, "HIGH": high, "MEDIUM": 1, "LOW": 0},
        **happened,
    }


def test_each_open_finding_is_a_letter_and_the_columns_count_the_changes() -> None:
    """You see at a glance whether a run gets better."""
    drawn = draw_plot(
        [
            counted(1, 2, 3, new=6),
            counted(2, 0, 2, fixed=4, caused_by_fix=1, back=1, still_open=1),
            {"round": 3, "open": {}, "fixed": 3},
        ]
    )

    assert drawn.splitlines() == [
        "                                       caused",
        "round  open  C H M L            new  by a fix  back  fixed",
        "    1     6  CCHHHM               6         .     .      .",
        "    2     3  HHM                  .         1     1      4",
        "    3     0  -                    .         .     .      3",
    ]


@pytest.mark.parametrize("number", [1, 20, 40, 500])
@pytest.mark.parametrize("many", [1, 40, 9_999])
def test_any_run_fits_a_terminal(number: int, many: int) -> None:
    """A plot that wraps or scrolls away is useless."""
    drawn = draw_plot([counted(n, many, many, new=many) for n in range(1, number + 1)]).splitlines()

    assert max(map(len, drawn)) <= 59
    assert len(drawn) <= 23


def test_of_a_long_run_the_first_and_the_last_rounds_are_shown() -> None:
    """The end is what matters, compared with the beginning."""
    drawn = draw_plot([counted(n, 0, n) for n in range(1, 41)]).splitlines()

    assert [line.split()[0] for line in drawn[2:]] == [
        *(str(n) for n in range(1, 7)),
        "...",
        *(str(n) for n in range(27, 41)),
    ]
    assert "20 more rounds" in drawn[8]


def test_many_findings_share_a_letter_and_a_single_one_is_still_visible() -> None:
    """A single critical finding among hundreds must not vanish by rounding."""
    _, heading, line = draw_plot([counted(1, 1, 300)]).splitlines()

    assert "C H M L x26" in heading
    assert "CHHHHHHHHHHHHM" in line


def test_a_run_without_a_review_says_so() -> None:
    """An empty plot would look like a mistake."""
    assert draw_plot([]) == "no rounds were reviewed"
