from typing import Any

import pytest

from signoff.agents.transcript import MAX_ERROR_LINE_BYTES, LineSplitter, Transcript


class Heard:
    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.plain: list[str] = []
        self.transcript = Transcript(self.events.append, self.plain.append)


def test_events_are_heard_line_by_line_however_they_are_cut() -> None:
    """A pipe cuts wherever it likes, in the middle of a character too."""
    heard = Heard()
    text = '{"a": "ä"}\nplain\n{"b": 2}'.encode()

    for at in range(len(text)):
        heard.transcript.add(text[at : at + 1])
    heard.transcript.close()

    assert heard.events == [{"a": "ä"}, {"b": 2}]
    assert heard.plain == ["plain"]


@pytest.mark.parametrize("text", [b'{\n "a": 1\n}\n', b'[\n{"a":\n 1}\n]'])
def test_a_document_over_many_lines_is_heard_whole(text: bytes) -> None:
    """Some output formats print it nicely."""
    heard = Heard()

    heard.transcript.add(text)
    heard.transcript.close()

    assert heard.events == [{"a": 1}]


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
def test_half_a_document_differs_from_text(text: str, is_truncated_json: bool) -> None:
    """Text may begin with a bracket; JSON that breaks off may not pass for text."""
    heard = Heard()

    heard.transcript.add(text.encode())
    heard.transcript.close()

    assert heard.transcript.is_truncated_json is is_truncated_json


def test_a_line_without_an_end_does_not_fill_the_memory() -> None:
    """Standard error is heard for as long as the program runs."""
    lines: list[str] = []
    errors = LineSplitter(lines.append)

    for _ in range(100):
        errors.add(b"x" * 1000)
    errors.add(b"\nlast ")
    errors.add(b"words\n")

    assert len(lines[0]) == MAX_ERROR_LINE_BYTES
    assert lines[1:] == ["last words"]
