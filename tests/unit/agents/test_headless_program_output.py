from typing import Any

import pytest

from signoff.agents.headless import MAX_ERROR_LINE_BYTES, LineSplitter, Transcript


class Received:
    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.plain: list[str] = []
        self.transcript = Transcript(self.events.append, self.plain.append)


def test_events_are_split_into_lines_wherever_chunks_end() -> None:
    """A chunk may end in the middle of a character."""
    received = Received()
    text = '{"a": "ä"}\nplain\n{"b": 2}'.encode()

    for at in range(len(text)):
        received.transcript.add(text[at : at + 1])
    received.transcript.close()

    assert received.events == [{"a": "ä"}, {"b": 2}]
    assert received.plain == ["plain"]


@pytest.mark.parametrize("text", [b'{\n "a": 1\n}\n', b'[\n{"a":\n 1}\n]'])
def test_a_document_over_many_lines_is_one_event(text: bytes) -> None:
    """Some output formats are indented."""
    received = Received()

    received.transcript.add(text)
    received.transcript.close()

    assert received.events == [{"a": 1}]


@pytest.mark.parametrize(
    ("text", "is_truncated_json"),
    [
        ('{"a": 1', True),
        ('[{"a": 1}, {"b"', True),
        ('{"a": 1}', False),
        ('{"a": 1}\n{"b": 2}', False),
        ("{{ template }}", False),
        ("[draft] a text", False),
        ("plain", False),
        ("", False),
    ],
)
def test_a_truncated_document_is_not_text(text: str, is_truncated_json: bool) -> None:
    """Text may start with a bracket, but truncated JSON must not pass as text."""
    received = Received()

    received.transcript.add(text.encode())
    received.transcript.close()

    assert received.transcript.is_truncated_json is is_truncated_json


def test_an_endless_line_does_not_fill_the_memory() -> None:
    """Standard error is read as long as the program runs."""
    lines: list[str] = []
    errors = LineSplitter(lines.append)

    for _ in range(100):
        errors.add(b"x" * 1000)
    errors.add(b"\nlast ")
    errors.add(b"words\n")

    assert len(lines[0]) == MAX_ERROR_LINE_BYTES
    assert lines[1:] == ["last words"]
