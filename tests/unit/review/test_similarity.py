import pytest

from signoff.review.similarity import calculate_similarity, has_converged


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
