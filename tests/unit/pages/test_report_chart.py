"""Tests of the chart of rounds."""

from xml.etree import ElementTree

from signoff.pages.report import rounds_chart
from signoff.review.history import Round


def chart(*opened: dict[str, int]) -> str:
    rounds = [Round(n, counts={"open": each}) for n, each in enumerate(opened, 1)]
    return str(rounds_chart(rounds))


def test_each_round_has_a_bar_with_a_part_for_each_severity() -> None:
    """Readers see at a glance whether the review converges."""
    svg, _, legend = chart({"CRITICAL": 1, "LOW": 3}, {"LOW": 2}, {}).partition("</svg>")

    root = ElementTree.fromstring(f"{svg}</svg>")
    rects = [each for each in root.iter() if each.tag.endswith("rect")]
    heights = [float(each.get("height", "")) for each in rects]

    assert [each.get("class") for each in rects] == ["critical", "low", "low"]
    assert heights[1] > heights[2] > heights[0]
    assert "round 3: 0 open" in svg
    assert "Critical" in legend
    assert "High" not in legend


def test_rounds_that_were_not_reviewed_have_no_chart() -> None:
    """An empty frame says nothing."""
    assert rounds_chart([Round(1)]) == ""
