from typing import Any

import click
import pytest

from signoff.cli.options import inputs


@pytest.mark.parametrize(
    ("text", "params"),
    [
        ("topic=a = b", {"topic": "a = b"}),
        ("topic=", {"topic": ""}),
        ("tags=[1]", {"tags": "[1]"}),
        ('tags:=["a, b", "c"]', {"tags": ["a, b", "c"]}),
        ('book := {"words": 3}', {"book": {"words": 3}}),
        ("count:=3", {"count": 3}),
    ],
)
def test_a_parameter_is_text_unless_it_is_marked_as_json(text: str, params: dict[str, Any]) -> None:
    """Without it, lists could only be passed to workflows that declare them."""
    assert inputs([text]) == params


@pytest.mark.parametrize("text", ["topic", "=x", "tags:=[1", "tags:=a,b", "tags:=" + "[" * 9000])
def test_a_parameter_that_cannot_be_read_is_refused(text: str) -> None:
    """Guessing could start a run with the wrong values."""
    with pytest.raises(click.BadParameter):
        inputs([text])


def test_a_placeholder_that_was_not_replaced_is_refused() -> None:
    """A command that was shown and pasted as it is would start a run about nothing."""
    with pytest.raises(click.BadParameter, match="'topic' still has its placeholder <topic>"):
        inputs(["topic=<topic>"])

    assert inputs(["topic=<b>"]) == {"topic": "<b>"}


@pytest.mark.parametrize("second", ["tag=b", "tag:=[]"])
def test_a_repeated_parameter_is_refused_with_the_syntax_of_a_list(second: str) -> None:
    """The first one would be lost silently."""
    with pytest.raises(click.BadParameter, match=r"'tag' is given twice; .* tag:='\["):
        inputs(["tag=a", second])
