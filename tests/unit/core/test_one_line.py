import pytest

from signoff.core.one_line import one_line


@pytest.mark.parametrize(
    ("text", "line"), [("a\n  b", "a b"), ("abcde", "abcde"), ("abc def", "abc …"), ("", "")]
)
def test_a_text_is_put_on_one_line_and_cut(text: str, line: str) -> None:
    """In a list or a prompt, a line break would begin another entry."""
    assert one_line(text, 5) == line
