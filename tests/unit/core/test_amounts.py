import pytest

from signoff.core.amounts import duration, format_spend, money
from signoff.core.spend import Spend, Usage


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0s"),
        (12.34, "12.3s"),
        (59.96, "1m 00s"),
        (125, "2m 05s"),
        (3725, "1h 02m"),
        (100_000, "1d 03h"),
        (-1, "0.0s"),
    ],
)
def test_a_duration_is_as_exact_as_a_human_needs(seconds: float, words: str) -> None:
    """`3725.123s` makes people reach for a calculator."""
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("usd", "words"),
    [
        (None, "unknown"),
        (0, "$0.00"),
        (0.00001, "<$0.0001"),
        (0.0042, "$0.0042"),
        (0.5, "$0.50"),
        (12.346, "$12.35"),
    ],
)
def test_a_small_amount_is_not_shown_as_nothing(usd: float | None, words: str) -> None:
    """A hundred calls at half a cent are not free."""
    assert money(usd) == words


def test_an_amount_that_no_call_reported_is_unknown() -> None:
    """Users would be surprised by a bill for a cost that was displayed as $0.00."""
    spend = Spend(calls=1)
    spend.add(None)

    assert format_spend(spend) == "1 call · tokens and cost unknown"


def test_a_partly_known_cost_is_a_lower_bound() -> None:
    """The known part helps; presented as the whole it would mislead."""
    spend = Spend(calls=2)
    spend.add(Usage(1000, 200, 0.5))
    spend.add(None)

    assert format_spend(spend) == "2 calls · at least 1,200 tokens · at least $0.50"


def test_the_cached_part_of_the_tokens_is_shown() -> None:
    """It costs a fraction of the rest."""
    spend = Spend(calls=1)
    spend.add(Usage(12_300, 800, 0.5, tokens_cached=9_800))

    assert format_spend(spend) == "1 call · 13,100 tokens (9,800 cached) · $0.50"
