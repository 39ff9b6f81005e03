import pytest

from signoff.review.finding import normalize, subject_of


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
