import pytest

from signoff.cli.text import ago, clean, one_line, wrapped


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\nsecond line", "plain\ttext\nsecond line"),
        ("\x1b[2J\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;new title\x07text", "text"),
        ("over\rwritten\x08", "overwritten"),
        ("dos\r\nlines", "dos\nlines"),
        ("a\u202eb\u2066c\u061cd", "abcd"),
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


def test_prose_breaks_between_words_and_keeps_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal breaks in the middle of a word, right where a person is to decide."""
    monkeypatch.setenv("COLUMNS", "24")

    shown = wrapped("  #7 Is this well-written text good?\n\n  - indented", hang="     ")

    assert shown.splitlines() == [
        "  #7 Is this",
        "     well-written text",
        "     good?",
        "",
        "  - indented",
    ]


def test_a_word_that_fits_nowhere_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses are there to be copied."""
    monkeypatch.setenv("COLUMNS", "5")
    address = "https://example.org/" + "x" * 30

    assert wrapped(f"see {address}") == f"see\n{address}"
