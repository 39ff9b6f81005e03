import time

import pytest

from signoff.cli.text import (
    PLAIN_SIGNS,
    ago,
    ahead,
    clean,
    moment,
    one_line,
    register_plain_signs,
    wrapped,
)


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
    """A model's text could otherwise change what an approver sees."""
    assert clean(text) == shown


def test_a_line_is_cut_to_its_width() -> None:
    """Prompts are pages long, and lists have one line for each."""
    assert one_line("one\n  two\tthree", 9) == "one two …"
    assert one_line("short", 9) == "short"


@pytest.mark.parametrize(
    ("seconds", "words"), [(5, "5s ago"), (65, "1m ago"), (7300, "2h ago"), (200000, "2d ago")]
)
def test_the_past_is_text_roughly(seconds: float, words: str) -> None:
    """What matters is whether it was just now or last week."""
    assert ago(1000.0, 1000.0 + seconds) == words


@pytest.mark.parametrize(
    ("zone", "words"),
    [
        ("UTC0", "2001-09-09 01:46:40 UTC"),
        ("CET-1", "2001-09-09 02:46:40 +01:00"),
        ("IST-5:30", "2001-09-09 07:16:40 +05:30"),
        ("XXX+3", "2001-09-08 22:46:40 -03:00"),
    ],
)
def test_a_time_includes_its_time_zone(
    zone: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log of a server is read in another time zone."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        text = moment(1e9)
    time.tzset()

    assert text == words


def test_the_future_is_text_roughly_and_exactly() -> None:
    """In a narrow table the end is cut off; how long it takes is what matters first."""
    assert ahead(10_000.0, 1000.0) == f"in 2h ({moment(10_000.0)})"
    assert ahead(1000.0, 1000.0) == f"due ({moment(1000.0)})"


def test_prose_breaks_between_words_and_keeps_its_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal breaks lines in the middle of a word, right where the user has to decide."""
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
    """URLs and paths have to stay copyable."""
    monkeypatch.setenv("COLUMNS", "5")
    address = "https://example.org/" + "x" * 30

    assert wrapped(f"see {address}") == f"see\n{address}"


def test_signs_of_our_own_have_plain_forms_where_only_ascii_can_be_printed() -> None:
    """A table full of question marks is unreadable in a plain locale."""
    register_plain_signs()

    plain = "✓ done · 3 more… → 深".encode("ascii", PLAIN_SIGNS)

    assert plain == b"+ done - 3 more~ > ?"
