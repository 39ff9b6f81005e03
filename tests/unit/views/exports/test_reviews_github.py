"""Tests of annotations for GitHub Actions."""

from pathlib import Path

from signoff.views.exports.reviews import github
from signoff.views.exports.run_record import ExportOptions
from tests.unit.review.flow.harness import fails, issue, rules
from tests.unit.views.exports.test_reviews_sarif import WIDE, review


async def test_open_findings_are_annotations_the_most_severe_first(tmp_path: Path) -> None:
    """GitHub shows the first ten of a step."""
    issues = [
        issue("No fish", "MEDIUM"),
        issue("Too loud", "CRITICAL", "loud", rule_id="clear-rule"),
    ]
    made = await review(tmp_path, [WIDE, fails(*issues), rules("REWRITE")], max_iterations=1)

    first, second = github(made, ExportOptions())

    start = WIDE.index("loud") + 1
    assert first == (
        f"::error file=artifact.md,line=1,endLine=1,col={start},endColumn={start + 4},"
        "title=CRITICAL clear/clear-rule::Too loud\n"
    )
    assert second == "::warning file=artifact.md,title=MEDIUM clear::No fish\n"


async def test_a_finding_cannot_begin_another_command(tmp_path: Path) -> None:
    """`::set-env` in a critic's text must not reach the runner."""
    hostile = "bad\n::error::fake\r\n::stop-commands::x%0A,a:b"
    found = fails(
        issue(hostile, evidence="loud", rule_id="a,b::c", suggested_fix="x\n::warning::y")
    )
    made = await review(tmp_path, [WIDE, found, rules("REWRITE")], max_iterations=1)

    (line,) = github(made, ExportOptions())

    assert line.count("\n") == 1
    assert "%0A::error::fake%0D%0A" in line
    assert "%250A" in line
    assert "title=HIGH clear/a%2Cb%3A%3Ac::" in line
