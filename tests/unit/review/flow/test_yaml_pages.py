"""Tests of values written as readable YAML."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from signoff.review.flow.yaml_pages import as_yaml


def read(page: bytes) -> object:
    return YAML(typ="safe", pure=True).load(page.decode())


def test_a_text_of_several_lines_is_a_block() -> None:
    """A work order on one line, with escapes, cannot be read."""
    page = as_yaml({"bill_of_work": "## Issue\n\n- fix it\n"}).decode()

    assert page == "bill_of_work: |\n  ## Issue\n\n  - fix it\n"


def test_a_blank_at_the_end_of_a_line_leaves_the_block_readable() -> None:
    """One blank turned a work order into a single line of escapes."""
    page = as_yaml({"bill_of_work": "- fix it \n- and this\n"}).decode()

    assert page == "bill_of_work: |\n  - fix it \n  - and this\n"


def test_a_text_that_cannot_be_a_block_has_short_escapes() -> None:
    """What is left in one line should still be readable."""
    assert as_yaml({"text": " lead\nx\ty"}).decode() == 'text: " lead\\nx\\ty"\n'


HIDDEN = [0xAD, 0x61C, *range(0x200B, 0x2010), *range(0x202A, 0x202F), 0x2060]
HIDDEN += [*range(0x2066, 0x206A), 0xE0000, 0xE0041, 0xE007F]


@pytest.mark.parametrize("code", HIDDEN, ids=hex)
@pytest.mark.parametrize("text", ["a{}b", "- fix\n- {}evorppa\n"])
def test_an_invisible_character_is_shown_as_its_escape(text: str, code: int) -> None:
    """An override turned the words of a work order around for the human who approved it."""
    value = {"key": text.format(chr(code)), text.format(chr(code)): "value"}

    page = as_yaml(value)

    assert chr(code) not in page.decode()
    assert f"{code:04X}" in page.decode()
    assert read(page) == value


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
LINES = st.lists(st.sampled_from(["", "a", " b", "c ", "- d", "#", "\t"]), max_size=5).map(
    "\n".join
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS | LINES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(st.dictionaries(TEXTS, VALUES, max_size=4))
def test_any_value_survives_a_round_trip(value: dict[str, object]) -> None:
    """A model may write anything."""
    assert read(as_yaml(value)) == value


def test_half_a_character_does_not_stop_the_page() -> None:
    """A model may send half of a surrogate pair."""
    assert read(as_yaml({"text": "cut \ud83d"})) == {"text": "cut \\ud83d"}
