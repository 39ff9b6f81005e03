import time

import pytest

from signoff.surfaces.cli.output import clean, moment, wrapped


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
