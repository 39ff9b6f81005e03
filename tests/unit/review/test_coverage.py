"""What a review has not read, in words and for programs."""

from __future__ import annotations

from signoff.review.coverage import NotRead, ReviewCoverage


def test_names_are_listed_by_reason_and_what_is_missing_comes_first() -> None:
    coverage = ReviewCoverage(
        (NotRead("a.lock", "lock file"), NotRead("b.png", "binary"), NotRead("c.png", "binary")),
        (NotRead("d.md", "too large"),),
    )

    assert not coverage.complete
    assert list(coverage.lines()) == [
        "not read (too large): d.md",
        "left out (binary): b.png, c.png",
        "left out (lock file): a.lock",
    ]


def test_many_names_are_counted() -> None:
    coverage = ReviewCoverage(tuple(NotRead(str(n), "hidden") for n in range(5)))

    assert list(coverage.lines(2)) == ["left out (hidden): 0, 1 and 3 more"]
    assert coverage.complete
    assert len(coverage.to_json()["left_out"]) == 5
