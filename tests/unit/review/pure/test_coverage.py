"""What a review has read and not read, in words and for programs."""

from __future__ import annotations

import pytest

from signoff.core.words import FindingStatus
from signoff.review.pure.coverage import (
    ConstraintResult,
    CoverageGap,
    Reader,
    ReaderKind,
    ReviewCoverage,
)


def test_names_are_listed_by_reason_and_what_is_missing_comes_first() -> None:
    coverage = ReviewCoverage(
        (
            CoverageGap("a.lock", "lock file"),
            CoverageGap("b.png", "binary"),
            CoverageGap("c.png", "binary"),
        ),
        (CoverageGap("d.md", "too large"),),
    )

    assert not coverage.complete
    assert list(coverage.lines()) == [
        "not read (too large): d.md",
        "left out (binary): b.png, c.png",
        "left out (lock file): a.lock",
    ]


def test_many_names_are_counted() -> None:
    coverage = ReviewCoverage(tuple(CoverageGap(str(n), "hidden") for n in range(5)))

    assert list(coverage.lines(2)) == ["left out (hidden): 0, 1 and 3 more"]
    assert coverage.complete
    assert len(coverage.to_json()["left_out"]) == 5


CLAUDE, RUFF = Reader("claude", ReaderKind.CRITIC), Reader("ruff", ReaderKind.CHECK)
REPLACED = Reader("auto", ReaderKind.CRITIC, usable=False, decided_by=("ann",))
FOUND = {FindingStatus.OPEN: {"HIGH": 1, "LOW": 2}, FindingStatus.DISMISSED: {"LOW": 1}}


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (ConstraintResult("short"), "nobody has read it"),
        (ConstraintResult("short", (CLAUDE, RUFF)), "passed by claude and ruff"),
        (ConstraintResult("short", (REPLACED,)), "passed by ann; auto gave no usable review"),
        (
            ConstraintResult("short", (CLAUDE,), FOUND),
            "1 HIGH open, 2 LOW open, 1 LOW dismissed; read by claude",
        ),
        (
            ConstraintResult("short", (RUFF,), changed=1),
            "not read since the last change; before it: passed by ruff",
        ),
    ],
)
def test_a_result_names_who_read_the_text(result: ConstraintResult, words: str) -> None:
    assert result.words == result.to_json()["result"] == words
