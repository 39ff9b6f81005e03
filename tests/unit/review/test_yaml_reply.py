import pytest

from signoff.review.fields import Unreadable
from signoff.review.yaml_reply import read_yaml


@pytest.mark.parametrize("number", ["1" * 5000, "0x" + "f" * 5000])
def test_a_reply_with_a_number_of_thousands_of_digits_is_unreadable(number: str) -> None:
    """The critic gets another try; the run does not end with an error of ours."""
    with pytest.raises(Unreadable):
        read_yaml(f"severity: {number}")
