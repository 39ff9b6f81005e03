"""One call, one item or one fan-out follows the rule of a step."""

import pytest

from signoff.core import transitions as rules
from signoff.core.errors import EngineError
from signoff.core.stop_reason import ErrorInfo


@pytest.mark.parametrize(
    ("attempt", "retries", "options", "usable", "expected"),
    [
        (1, 1, ("retry",), False, rules.Retry("bad")),
        (2, 1, ("retry",), False, rules.Wait("bad", ("retry",))),
        (1, 0, ("retry",), False, rules.Wait("bad", ("retry",))),
        (2, 1, (), False, rules.GiveUp("bad")),
        (1, 1, (), True, rules.Retry("bad")),
        (2, 1, ("retry",), True, rules.Accept()),
    ],
)
def test_a_request_that_fell_short_is_retried_then_accepted_asked_about_or_given_up(
    attempt: int, retries: int, options: tuple[str, ...], usable: bool, expected: object
) -> None:
    """Steps, items and calls that behave differently would have to be learned three times."""
    position = rules.RequestPosition(attempt, retries, options)

    assert rules.decide_request(position, rules.FellShort("bad", usable=usable)) == expected


def test_a_request_that_raised_is_never_retried() -> None:
    """The same code would raise the same again."""
    assert rules.decide_request(
        rules.RequestPosition(1, 5), rules.Raised(ErrorInfo("ValueError", "bug"))
    ) == rules.GiveUp("bug")


def test_a_request_goes_where_a_human_says() -> None:
    """Only `retry` sends it back; every other choice ends it."""
    position = rules.RequestPosition(2, 1, ("retry", "skip"))

    assert rules.decide_request(position, rules.Chosen("retry", "softer")) == rules.Retry(
        "softer", True
    )
    assert rules.decide_request(position, rules.Chosen("skip")) == rules.Accept()
    with pytest.raises(EngineError):
        rules.decide_request(position, rules.Chosen("other"))
