import pytest

from signoff.review.pure import same_claim
from signoff.review.pure.similarity import calculate_similarity, has_converged
from tests.tables import table


@pytest.mark.parametrize(
    ("a", "b", "least", "most"),
    [
        ("Hydrate Green", "Hydrate Green", 1, 1),
        ("Hydrate Green", "  hydrate\ngreen ", 1, 1),
        ("", "", 1, 1),
        ("Hydrate Green", "", 0, 0),
        ("Hydrate Green, Live Clean", "Hydrate Green, Live Cleanly", 0.95, 1),
        ("Hydrate Green, Live Clean", "Sip the future", 0, 0.6),
    ],
)
def test_similarity_is_a_number_from_0_to_1(a: str, b: str, least: float, most: float) -> None:
    """Thresholds in settings only make sense on a fixed scale."""
    assert least <= calculate_similarity(a, b) <= most
    assert calculate_similarity(a, b) == calculate_similarity(b, a)


def test_versions_converge_from_the_third_on() -> None:
    """Two equal first drafts still deserve another try."""
    assert not has_converged(["a slogan", "a slogan"])
    assert has_converged(["first", "a slogan", "a slogan"])
    assert not has_converged(["a slogan", "a slogan", "something else"])
    assert not has_converged(["x", "abcd", "abcx"], threshold=0.75)
    assert has_converged(["x", "abcd", "abcx"], threshold=0.7)


@table(
    ("one", "other", "same"),
    [
        ("not exact", "It does not give an exact number.", True),
        ("`unused` is assigned but never used", "the assigned name unused has no reader", True),
        ("The total is cut off, not rounded.", "cutting off the total loses a cent", True),
        ("readTotal() slices with a negative index", "negative slicing in read_total", True),
        ("Die Zahl fehlt im Absatz", "im Absatz fehlt jede Zahl", True),
        ("", "", True),
        ("The total is cut off, not rounded.", "The password is logged.", False),
        ("This is a bug in the code", "This is a problem of the method", False),
        ("the", "the value", False),
        ("\u4ef7\u683c\u4e0d\u660e\u786e", "\u4ef7\u683c\u4e0d\u660e\u786e", True),
    ],
)
def test_claims_are_compared_by_the_words_that_carry_meaning(
    one: str, other: str, same: bool
) -> None:
    """A dismissed finding must not return because another model words it differently."""
    assert same_claim(one, other) is same
    assert same_claim(other, one) is same
