import json
from pathlib import Path
from types import FunctionType

import pytest

from signoff.contracts.expressions import Expression
from signoff.runtime.error_text import raised_at

HERE = Path(__file__).name


def own() -> None:
    raise KeyError("title")


def in_a_library() -> None:
    json.loads("{")


def in_the_engine() -> None:
    Expression("1 +")


@pytest.mark.parametrize("raises", [own, in_a_library, in_the_engine])
def test_the_innermost_line_of_the_authors_code_is_reported(raises: FunctionType) -> None:
    """Which of ten look-ups failed is what its author wants to know, and not a line of json."""
    with pytest.raises(Exception, match=r".") as caught:
        raises()

    assert raised_at(caught.value) == f" ({HERE}:{raises.__code__.co_firstlineno + 1})"


def test_what_no_author_has_written_has_no_place() -> None:
    """A line in the engine would mislead the reader."""
    with pytest.raises(Exception, match=r".") as caught:
        Expression("1 +")
    engines = caught.value.with_traceback(caught.value.__traceback__ and caught.tb.tb_next)

    assert raised_at(engines) == ""
    assert raised_at(ValueError("never raised")) == ""
