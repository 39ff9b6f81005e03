import pytest

from signoff.core.one_line import one_line, start_of


@pytest.mark.parametrize(
    ("text", "line"), [("a\n  b", "a b"), ("abcde", "abcde"), ("abc def", "abc …"), ("", "")]
)
def test_a_text_is_put_on_one_line_and_cut(text: str, line: str) -> None:
    """In a list or a prompt, a line break would begin another entry."""
    assert one_line(text, 5) == line


def test_the_start_of_a_text_ends_between_words() -> None:
    """Half a word in an error looks like the cause of it."""
    assert start_of("one two\nthree", 12) == "one two …"
    assert start_of("one two", 12) == "one two"
    assert start_of("x" * 20, 12) == f"{'x' * 11}…"
