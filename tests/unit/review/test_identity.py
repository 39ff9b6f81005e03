import pytest

from signoff.review.critique import Critique, CritiqueIssue, Overall
from signoff.review.identity import identify, normalize, subject_of
from signoff.review.severity import Severity


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("  Two\n\twords ", "two words"),
        ("**Bold** and `code`", "bold and code"),
        ("> # Quoted heading", "quoted heading"),
        ("\u201cSmart\u201d \u2013 isn\u2019t it?", '"smart" - isn\'t it?'),
        ("\ufb01ne\u00a0print", "fine print"),
        ("hid\u00adden\u200b marks", "hidden marks"),
        ("***", ""),
    ],
)
def test_typography_is_normalized(text: str, plain: str) -> None:
    """Two critics rarely quote with the same markup."""
    assert normalize(text) == plain


def test_a_finding_is_about_its_quote_else_its_location_else_its_text() -> None:
    """Findings must be distinguishable, whatever a critic leaves out."""
    assert subject_of("A quote", "Place", "words", omission=False) == "a quote"
    assert subject_of("***", "Place", "words", omission=False) == "***"
    assert subject_of("OMISSION", "Place", "words", omission=True) == "place"
    assert subject_of("OMISSION", "", "Words", omission=True) == "words"
    assert subject_of("", "", "Words", omission=False) == "words"


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
