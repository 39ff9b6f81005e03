from typing import Any

import pytest

from signoff.review.flow.end_view import draw_plot


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
