"""One call, one item or one fan-out follows the rule of a step."""

import pytest

from signoff.core.errors import EngineError
from signoff.core.stop_reason import ErrorInfo
from signoff.core.transitions import (
    Accept,
    Chosen,
    FellShort,
    GiveUp,
    Raised,
    RequestPosition,
    Retry,
    Wait,
    decide_request,
)


@pytest.mark.parametrize(
    ("attempt", "retries", "options", "usable", "expected"),
    [
        (1, 1, ("retry",), False, Retry("bad")),
        (2, 1, ("retry",), False, Wait("bad", ("retry",))),
        (1, 0, ("retry",), False, Wait("bad", ("retry",))),
        (2, 1, (), False, GiveUp("bad")),
        (1, 1, (), True, Retry("bad")),
        (2, 1, ("retry",), True, Accept()),
    ],
)
def test_a_request_that_fell_short_is_retried_then_accepted_asked_about_or_given_up(
    attempt: int, retries: int, options: tuple[str, ...], usable: bool, expected: object
) -> None:
    """Steps, items and calls that behave differently would have to be learned three times."""
    position = RequestPosition(attempt, retries, options)

    assert decide_request(position, FellShort("bad", usable=usable)) == expected


def test_a_request_that_raised_is_never_retried() -> None:
    """The same code would raise the same again."""
    assert decide_request(RequestPosition(1, 5), Raised(ErrorInfo("ValueError", "bug"))) == GiveUp(
        "bug"
    )


def test_a_request_goes_where_a_human_says() -> None:
    """Only `retry` sends it back; every other choice ends it."""
    position = RequestPosition(2, 1, ("retry", "skip"))

    assert decide_request(position, Chosen("retry", "softer")) == Retry("softer", True)
    assert decide_request(position, Chosen("skip")) == Accept()
    with pytest.raises(EngineError):
        decide_request(position, Chosen("other"))
