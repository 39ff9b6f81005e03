from typing import Any

import click
import pytest

from signoff.cli.options import inputs


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("topic=a = b", {"topic": "a = b"}),
        ("topic=", {"topic": ""}),
        ("tags=[1]", {"tags": "[1]"}),
        ('tags:=["a, b", "c"]', {"tags": ["a, b", "c"]}),
        ('book := {"words": 3}', {"book": {"words": 3}}),
        ("count:=3", {"count": 3}),
    ],
)
def test_a_parameter_is_text_unless_it_is_said_to_be_json(given: str, read: dict[str, Any]) -> None:
    """A list could be given to no workflow that does not declare one."""
    assert inputs([given]) == read


@pytest.mark.parametrize("given", ["topic", "=x", "tags:=[1", "tags:=a,b", "tags:=" + "[" * 9000])
def test_a_parameter_that_cannot_be_read_is_refused(given: str) -> None:
    """Guessing would start a run with something else than was meant."""
    with pytest.raises(click.BadParameter):
        inputs([given])


@pytest.mark.parametrize("second", ["tag=b", "tag:=[]"])
def test_a_parameter_given_twice_is_refused_with_the_way_to_give_a_list(second: str) -> None:
    """The first one would be lost without a word."""
    with pytest.raises(click.BadParameter, match=r"'tag' is given twice; .* tag:='\["):
        inputs(["tag=a", second])
