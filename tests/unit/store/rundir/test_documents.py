import json

from signoff.store.rundir.documents import LONGEST_QUOTE, log_line, quote, thread_line, timestamp


def test_a_timestamp_is_utc_in_iso_8601() -> None:
    """Two machines in two time zones must write the same bytes for the same event."""
    assert timestamp(1_700_000_000.25) == "2023-11-14T22:13:20.250Z"


def test_a_thread_line_is_one_object_with_a_short_stable_id() -> None:
    """Programs recognize a line they have seen by its id."""
    line = thread_line("run:1:0", 0.0, {"text": "two\nlines", "half": "\ud800"})

    assert line.count(b"\n") == 1
    entry = json.loads(line)
    assert entry["text"] == "two\nlines"
    assert entry["half"] == "\ud800"
    assert len(entry["id"]) == 16
    assert thread_line("run:1:0", 9.0, {})[:30] == line[:30]
    assert thread_line("run:1:1", 0.0, {})[:30] != line[:30]


def test_outside_text_stays_on_its_line_without_control_sequences() -> None:
    """Otherwise a reply could forge log lines or clear the screen of a user who follows the log."""
    line = log_line(0.0, "said\n2023-01-01T00:00:00Z  approved\x1b[2J\u202e")

    expected = b"1970-01-01T00:00:00.000Z  said 2023-01-01T00:00:00Z approved"
    assert line == expected + rb"\u001b[2J\u202e" + b"\n"


def test_a_long_text_is_cut_and_a_short_one_is_whole() -> None:
    """A log is an overview; the complete text is in its own file."""
    assert quote("short") == "short"
    assert quote("x" * 5000) == "x" * LONGEST_QUOTE + "…"
