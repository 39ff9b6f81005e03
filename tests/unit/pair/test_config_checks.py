import pytest

from signoff.pair.config import parse_check


@pytest.mark.parametrize(
    ("rule", "good", "bad"),
    [
        ("words=2", "pure water", "very pure water"),
        ("words = 1", "water", "pure water"),
        ("characters=5", "water", "waters"),
        ("lines=1", "water", "pure\nwater"),
        ("contains=water", "Pure WATER!", "waterproof"),
        ("contains=pure water", "pure\n water", "pure, water"),
        ("avoids=amazing", "amazingly good", "Amazing!"),
        ("avoids=c++", "c", "c++"),
    ],
)
def test_a_check_finds_what_breaks_its_rule(rule: str, good: str, bad: str) -> None:
    """Checks take the place of a reviewer, so they must be exact."""
    check = parse_check(rule)

    assert check(good) == ""
    assert check(bad).endswith(".")


@pytest.mark.parametrize(
    "rule", ["", "words", "words=", "words=0", "words=-1", "words=two", "words=\u0662", "size=3"]
)
def test_a_rule_that_is_none_is_refused(rule: str) -> None:
    """A typo would otherwise approve everything."""
    with pytest.raises(ValueError, match=r"valid:|whole number"):
        parse_check(rule)
