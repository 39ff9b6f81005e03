from typing import Any

import pytest

from signoff.core.args import Arg, Param, placeholder, value_text


@pytest.mark.parametrize(
    ("param", "text"),
    [
        (Param("sure", str, Arg(choices=("low", "high", "certain"))), "<low|high|certain>"),
        (Param("deep", bool), "<false|true>"),
        (Param("size", int, Arg(min=1, max=4)), "<1|2|3|4>"),
        (Param("size", int, Arg(min=1, max=400)), "<1|...|400>"),
        (Param("size", int), "<size>"),
        (Param("decision", str), "<decision>"),
    ],
)
def test_a_placeholder_lists_the_choices_or_names_the_parameter(param: Param, text: str) -> None:
    """The choices come in the order of their domain; that is what agents fill in."""
    assert placeholder(param) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (["a", "b c"], "a,b c"),
        (["a,b", "c"], '["a,b", "c"]'),
        ([], "[]"),
        ([1, 2], "[1, 2]"),
        (["[x]"], '["[x]"]'),
        ({"a": "ü"}, '{"a": "ü"}'),
        (False, "false"),
        (1.5, "1.5"),
    ],
)
def test_values_are_written_as_they_are_read_again(value: Any, text: str) -> None:
    """A list whose items hold commas would come back as another list."""
    assert value_text(value) == text
