"""Tests of values written as YAML for people."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from signoff.flows.yaml_pages import as_yaml


def read(page: bytes) -> object:
    return YAML(typ="safe", pure=True).load(page.decode())


def test_a_text_of_several_lines_is_a_block() -> None:
    """A bill of work on one line, with escapes, cannot be read."""
    page = as_yaml({"bill_of_work": "## Issue\n\n- mend it\n"}).decode()

    assert page == "bill_of_work: |\n  ## Issue\n\n  - mend it\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no",
        "12",
        "a: b",
        "# c",
        "- d",
        " lead\nx",
        "trail \nx",
        "a\r\nb",
        "\x00",
        "é\n\u2028",
        "\t\n",
    ],
)
def test_any_text_comes_back_as_it_was(text: str) -> None:
    """What critics write is repeated here, whatever it looks like."""
    assert read(as_yaml({"text": text, "listed": [text]})) == {"text": text, "listed": [text]}


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_no_text_is_an_exception(text: str) -> None:
    """Nobody can list everything a model may write."""
    assert read(as_yaml({"text": text})) == {"text": text}


def test_half_a_character_does_not_stop_the_page() -> None:
    """A model may send half of a pair of surrogates."""
    assert read(as_yaml({"text": "cut \ud83d"})) == {"text": "cut \\ud83d"}
