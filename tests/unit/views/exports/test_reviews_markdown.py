"""Tests of reviews as Markdown."""

from pathlib import Path

from signoff.views.exports.reviews import MOST_FINDINGS, markdown
from signoff.views.exports.run_record import ExportOptions
from tests.unit.review.flow.harness import fails, issue, passes, rules
from tests.unit.views.exports.test_reviews_sarif import WIDE, review


async def test_it_has_the_verdict_the_findings_the_rounds_and_the_cost(tmp_path: Path) -> None:
    """Reviewers of a pull request decide by it."""
    found = fails(issue("Too loud", evidence="loud", rule_id="clear-rule", suggested_fix="calm"))
    answers = [WIDE, found, rules("REWRITE"), "The calm sea."]
    made = await review(tmp_path, answers, max_iterations=1)

    text = "".join(markdown(made, ExportOptions()))

    lines = text.splitlines()
    assert lines[2] == "## Has not passed review: round limit, 1 round without passing"
    assert "### Open findings: 1" in lines
    assert "- **HIGH** `artifact.md:1` clear/clear\\-rule: Too loud" in lines
    assert "  > loud" in lines
    assert "  Suggested fix: calm" in lines
    assert "| 1 | 1 | 0 | 1 | 0 | 0 | 1 | 0 | 0 | 0 |" in lines


async def test_an_approved_review_is_short(tmp_path: Path) -> None:
    """A comment without findings must not hide that there are none."""
    made = await review(tmp_path, [WIDE, passes()])

    text = "".join(markdown(made, ExportOptions()))

    assert "\n## Passed review\n" in text
    assert "Open findings" not in text


async def test_hostile_texts_are_no_markup_and_mention_no_one(tmp_path: Path) -> None:
    """A comment is posted with the rights of the pipeline."""
    hostile = "![x](http://a/b) <img src=x> @octocat [link](x) `code` | cell\n# heading\n- item"
    found = fails(issue(hostile, evidence="loud", rule_id=hostile, suggested_fix=hostile))
    made = await review(tmp_path, [WIDE, found, rules("REWRITE")], max_iterations=1)

    text = "".join(markdown(made, ExportOptions()))

    assert "](" not in text
    assert "<img" not in text
    assert "@octocat" not in text
    assert "\n# heading" not in text


async def test_a_long_list_is_cut(tmp_path: Path) -> None:
    """GitHub refuses comments that are too long."""
    words = [f"word{n}x" for n in range(MOST_FINDINGS + 5)]
    issues = [issue(f"{word} is wrong. " * 60, "HIGH", word) for word in words]
    made = await review(
        tmp_path, [" ".join(words), fails(*issues), rules("REWRITE")], max_iterations=1
    )

    text = "".join(markdown(made, ExportOptions()))

    assert "- and 5 more" in text
    assert len(text) < 65_536
