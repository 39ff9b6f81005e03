from signoff.review.critique import Critique, CritiqueIssue, Overall
from signoff.review.identity import identify
from signoff.review.severity import Severity


def test_ids_depend_only_on_the_content() -> None:
    """A run on another machine, or after a restart, must give its findings the same ids."""
    issues = (
        CritiqueIssue("c-1", "R-1", Severity.HIGH, "Top", "wrong", "a *quote*"),
        CritiqueIssue("c-2", "r-1 ", Severity.LOW, "End", "wrong", "A quote"),
        CritiqueIssue("c-3", "r-1", Severity.HIGH, "Top", "missing", "OMISSION"),
    )
    critique = Critique("c", "claude", 1, Overall.FAIL, issues)

    (named,) = identify([], [critique], "a quote")

    assert named == ["7b3be1c73bee", "7b3be1c73bee", "85344b565f78"]


def test_no_issues_have_no_ids() -> None:
    """A clean critique is the good case."""
    assert identify([], [Critique("c", "claude", 1, Overall.PASS)], "text") == [[]]
