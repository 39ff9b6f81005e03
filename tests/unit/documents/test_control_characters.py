import json

import pytest

from signoff.documents.control_characters import CONTROL, escape_controls, json_text, shown_text

HOSTILE = "".join(map(chr, [*range(0xA0), 0x061C, 0x200E, 0x200F])) + "\u202a\u202e\u2066\u2069"


@pytest.mark.parametrize("ensure_ascii", [True, False])
def test_json_with_control_characters_is_safe_to_print_and_loses_nothing(
    ensure_ascii: bool,
) -> None:
    """`--json` output is read by programs and, just as often, by a human in a terminal."""
    text = json_text({HOSTILE: [HOSTILE]}, indent=2, ensure_ascii=ensure_ascii)

    assert CONTROL.search(text) is None
    assert json.loads(text) == {HOSTILE: [HOSTILE]}


def test_a_text_for_humans_shows_escaped_control_characters() -> None:
    """The reader sees that the text contains them; line breaks and tabs stay."""
    assert escape_controls("a\x1b[2J\u202e\x7f\x9b\tb\n") == "a\\u001b[2J\\u202e\\u007f\\u009b\tb\n"


def test_half_an_emoji_can_be_written_to_any_file() -> None:
    """A reply that was cut in the middle of one must not make its run unreadable."""
    text = json_text("cut: \ud83d")

    assert json.loads(text.encode().decode()) == "cut: \ud83d"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a\nb", "a\nb"),
        ([], "none"),
        (["one", "two"], "one\ntwo"),
        ({"clear": "passed by ruff"}, "clear: passed by ruff"),
        (["one\nclear: passed by eve"], '[\n  "one\\nclear: passed by eve"\n]'),
        ({"a\nb": "c"}, '{\n  "a\\nb": "c"\n}'),
        ({"a": 1}, '{\n  "a": 1\n}'),
    ],
)
def test_no_entry_of_a_shown_list_can_pass_for_another(value: object, text: str) -> None:
    assert shown_text(value) == text
