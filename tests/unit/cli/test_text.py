import pytest

from signoff.cli.text import ago, clean, one_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\nsecond line", "plain\ttext\nsecond line"),
        ("\x1b[2J\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;new title\x07text", "text"),
        ("over\rwritten\x08", "overwritten"),
        ("dos\r\nlines", "dos\nlines"),
        ("a\u202eb\u2066c", "abc"),
        ("\x9b31mx", "31mx"),
        ("Grüße, 世界 ✓", "Grüße, 世界 ✓"),
    ],
)
def test_nothing_a_terminal_would_obey_gets_through(text: str, shown: str) -> None:
    """A model's text could otherwise repaint what a person believes to be approving."""
    assert clean(text) == shown


def test_a_line_is_cut_to_its_width() -> None:
    """Prompts are pages long, and lists have one line for each."""
    assert one_line("one\n  two\tthree", 9) == "one two …"
    assert one_line("short", 9) == "short"


@pytest.mark.parametrize(
    ("seconds", "words"), [(5, "5s ago"), (65, "1m ago"), (7300, "2h ago"), (200000, "2d ago")]
)
def test_the_past_is_told_roughly(seconds: float, words: str) -> None:
    """What matters is whether it was just now or last week."""
    assert ago(1000.0, 1000.0 + seconds) == words
