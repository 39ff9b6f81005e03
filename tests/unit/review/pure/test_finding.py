import pytest

from signoff.core.severity import Severity
from signoff.core.words import FindingStatus, Label
from signoff.review.pure.finding import Finding, normalize, subject_of


@pytest.mark.parametrize(
    ("status", "label", "became"),
    [
        (FindingStatus.OPEN, Label.NEW, "new"),
        (FindingStatus.OPEN, Label.STILL_OPEN, "still_open"),
        (FindingStatus.OPEN, Label.BACK, "back"),
        (FindingStatus.OPEN, Label.CAUSED_BY_FIX, "caused_by_fix"),
        (FindingStatus.FIXED, Label.FIXED, "fixed"),
        (FindingStatus.ADDRESSED, Label.FIXED, "fixed"),
        (FindingStatus.DISMISSED, Label.BACK, "dismissed"),
        (FindingStatus.IGNORED, Label.NEW, "ignored"),
    ],
)
def test_one_field_tells_programs_what_became_of_a_finding(
    status: FindingStatus, label: Label, became: str
) -> None:
    """With two fields that overlap, every program would combine them in its own way."""
    history = ((1, Label.NEW), (2, label))
    found = Finding(
        "f1", "clear", "r", Severity.HIGH, "see", "", "Wrong.", status, label, history=history
    )

    facts = found.facts()

    assert (facts["status"], facts["history"]) == (became, [[1, "new"], [2, label.value]])
    assert "label" not in facts
    assert facts.get("awaiting_sign_off", False) is (status is FindingStatus.ADDRESSED)
    assert Finding.from_json(found.to_json()) == found


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
