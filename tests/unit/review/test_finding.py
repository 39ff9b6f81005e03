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


@pytest.mark.parametrize(
    "mark", ["\u0301", "\u0301\u0323", "\u0f73"], ids=["one", "two", "tibetan"]
)
def test_a_long_row_of_combining_marks_is_cut(mark: str) -> None:
    """Unicode sorts such a row, which takes minutes for a row of a million marks."""
    normalized = normalize("a" + mark * 1_000_000)

    assert normalized[0] in "aáạ"
    assert len(normalized) < 100
