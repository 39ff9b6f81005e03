import pytest

from signoff.review.parsing import read_yaml
from signoff.review.reply_text import Unreadable


@pytest.mark.parametrize("number", ["1" * 5000, "0x" + "f" * 5000])
def test_a_reply_with_a_number_of_thousands_of_digits_is_unreadable(number: str) -> None:
    """The judge gets another try instead of the run failing with an internal error."""
    with pytest.raises(Unreadable):
        read_yaml(f"severity: {number}")


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x]\nb: [*a, *a]\n",
        "a: &a x\n",
        "[" * 100_000,
        "- a\n" * 40_000,
        "{a: " * 60 + "}" * 60,
    ],
    ids=["aliases", "an anchor", "brackets", "a long list", "nested mappings"],
)
def test_a_reply_that_would_take_long_to_read_is_unreadable(text: str) -> None:
    with pytest.raises(Unreadable):
        read_yaml(text)
