import pytest

from signoff.agents.answer import as_dict, as_list, as_text, token_count


def test_a_field_of_an_unexpected_type_is_read_as_empty() -> None:
    """A vendor that changes its format must not end a run with a TypeError."""
    assert (as_dict({"a": 1}), as_list([1]), as_text("a")) == ({"a": 1}, [1], "a")
    assert (as_dict(None), as_list("a"), as_text(7)) == ({}, [], "")


@pytest.mark.parametrize("count", [0, None, -1, True, "12", 1.5])
def test_an_impossible_token_count_is_unknown(count: object) -> None:
    """Servers that do not count tokens report 0, which would make their calls look free."""
    assert token_count(count) is None
