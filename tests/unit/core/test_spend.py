from itertools import product
from typing import Any

import pytest

from signoff.core.spend import LedgerEntry, Limits, Spend, Usage, reached
from tests.tables import table


@table(
    ("name", "value"),
    product(
        ["usd", "tokens", "calls", "seconds"], [-1, float("nan"), float("inf"), True, "5", [1]]
    ),
)
def test_a_limit_is_a_number_of_at_least_zero(name: str, value: Any) -> None:
    """`usd: five` in a settings file must be an error, not a crash and not an absent limit."""
    with pytest.raises(ValueError, match=f"limit {name} must be a number of at least 0"):
        Limits.from_json({name: value})


def test_an_unknown_limit_is_refused_and_the_known_ones_are_listed() -> None:
    """A misspelt `dollars: 5` would otherwise set no limit."""
    with pytest.raises(ValueError, match=r"'dollars'; the limits are: usd, tokens, calls, seconds"):
        Limits.from_json({"dollars": 5})


def test_stronger_limits_are_completed_by_weaker_ones() -> None:
    """`--limit usd=5` must not remove the definition's limit on calls."""
    assert Limits(usd=5).over(Limits(usd=1, calls=9)) == Limits(usd=5, calls=9)
    assert Limits().over(Limits(usd=1)) == Limits(usd=1)


@pytest.mark.parametrize(
    "limits", [Limits(usd=0), Limits(tokens=0), Limits(calls=0), Limits(seconds=0)]
)
def test_a_limit_of_zero_is_a_limit(limits: Limits) -> None:
    """`calls: 0` forbids calls; taking it for nothing would allow them all."""
    assert limits
    assert not Limits()


def test_the_tokens_of_a_call_are_unknown_when_either_half_is() -> None:
    """Half of a count does not make a total."""
    assert Usage(3, 4).tokens == 7
    assert Usage(3, None).tokens is None
    assert Usage(None, 4).tokens is None
    assert Usage(3, 4, 0.0, "m").to_json() == {
        "tokens_in": 3,
        "tokens_out": 4,
        "usd": 0.0,
        "model": "m",
    }
    assert Usage().to_json() == {}


@pytest.mark.parametrize("usage", [None, Usage(), Usage(1, None, None)])
def test_one_unknown_call_makes_the_total_unknown(usage: Usage | None) -> None:
    """Unknown is not nothing: showing the rest as the total would be a lie."""
    spend = Spend()
    spend.add(Usage(1, 2, 0.25))

    spend.add(usage)

    assert (spend.tokens, spend.usd) == (None, None)
    assert (spend.known_tokens, spend.known_usd) == (3, 0.25)
    assert (spend.unknown_tokens, spend.unknown_usd) == (1, 1)


@pytest.mark.parametrize(
    ("limits", "spend", "limit"),
    [
        (Limits(), Spend(calls=99, known_usd=99), None),
        (Limits(calls=2), Spend(calls=1), None),
        (Limits(calls=2), Spend(calls=2), "calls"),
        (Limits(calls=0), Spend(), "calls"),
        (Limits(tokens=10), Spend(known_tokens=9), None),
        (Limits(tokens=10), Spend(known_tokens=10), "tokens"),
        (Limits(usd=0.5), Spend(known_usd=0.49), None),
        (Limits(usd=0.5), Spend(known_usd=0.5), "usd"),
        (Limits(usd=0), Spend(), "usd"),
        (Limits(seconds=60), Spend(seconds=59.9), None),
        (Limits(seconds=60), Spend(seconds=60), "seconds"),
        (Limits(calls=1, usd=1), Spend(calls=1, known_usd=1), "calls"),
    ],
)
def test_another_call_needs_room_within_every_limit(
    limits: Limits, spend: Spend, limit: str | None
) -> None:
    """The call that would exceed a limit is never started."""
    assert reached(limits, spend) == limit


@pytest.mark.parametrize("odd", [-1, 1e12, float("nan"), float("inf"), True, "10", [], 1 << 70])
def test_an_impossible_amount_is_found_and_cleaned_to_unknown(odd: Any) -> None:
    """A wrong report of one agent must not spoil all totals."""
    usage = Usage(odd, odd, odd)

    assert set(usage.impossible()) == {"tokens_in", "tokens_out", "usd"}
    assert usage.cleaned() == Usage()


def test_a_model_is_known_by_some_text() -> None:
    """It is part of a row in the ledger."""
    usage = Usage(model=["a"])  # type: ignore[arg-type]  # as an agent might report it

    assert usage.cleaned().model == "['a']"


def test_cached_tokens_are_a_part_of_the_input_that_limits_count() -> None:
    """A limit on tokens means all of them; the price is what differs."""
    spend = Spend()

    spend.add(Usage(100, 20, 0.1, tokens_cached=80))

    assert (spend.tokens, spend.known_cached) == (120, 80)
    assert reached(Limits(tokens=120), spend) == "tokens"


def test_a_ledger_counts_the_calls_that_did_not_report_cached_tokens() -> None:
    """Unknown is not zero; without any input, though, nothing can have been cached."""
    entry = LedgerEntry("a", "claude", "")

    entry = entry.plus(Usage(100, 20, tokens_cached=80)).plus(Usage(0, 0, 0.0))
    assert (entry.tokens_cached, entry.unknown_cached) == (80, 0)

    entry = entry.plus(Usage(100, 20)).plus(None)
    assert (entry.tokens_cached, entry.unknown_cached) == (80, 2)


def test_an_impossible_count_of_cached_tokens_is_recognized() -> None:
    """It would spoil the price and the totals."""
    usage = Usage(1, 1, tokens_cached=-5)

    assert usage.impossible() == {"tokens_cached": -5}
    assert usage.cleaned() == Usage(1, 1)
