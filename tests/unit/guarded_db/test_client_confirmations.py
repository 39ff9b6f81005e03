import pytest

from signoff.errors import NotAllowed
from signoff.guarded_db.client import MOST_OPEN, VALID_SECONDS, Confirmations, SeenRows
from signoff.testing import FrozenClock

SCOPE = "DELETE FROM books WHERE id = ?"
SEEN = SeenRows(3, 2, "digest")


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def confirmations(clock: FrozenClock) -> Confirmations:
    return Confirmations(clock.monotonic)


def test_a_token_is_valid_once(confirmations: Confirmations) -> None:
    """One confirmation must not cover a DELETE in a loop."""
    token = confirmations.issue(SCOPE, [1], SEEN)
    assert confirmations.redeem(token, SCOPE, [1]) == SEEN

    with pytest.raises(NotAllowed, match="used before"):
        confirmations.redeem(token, SCOPE, [1])


def test_a_token_is_valid_for_thirty_seconds(
    confirmations: Confirmations, clock: FrozenClock
) -> None:
    """The same condition may match other rows later."""
    in_time, too_late = confirmations.issue(SCOPE, [1], SEEN), confirmations.issue(SCOPE, [1], SEEN)

    clock.advance(VALID_SECONDS)
    confirmations.redeem(in_time, SCOPE, [1])
    clock.advance(0.001)

    with pytest.raises(NotAllowed, match="30 seconds"):
        confirmations.redeem(too_late, SCOPE, [1])


@pytest.mark.parametrize(
    ("scope", "params"),
    [
        ("DELETE FROM chapters WHERE id = ?", [1]),
        ("DELETE FROM books WHERE id > ?", [1]),
        (SCOPE, [2]),
        (SCOPE, ["1"]),
        (SCOPE, []),
    ],
)
def test_a_token_is_for_one_table_one_condition_and_its_values(
    confirmations: Confirmations, scope: str, params: list[object]
) -> None:
    """A token for one row must not delete another."""
    token = confirmations.issue(SCOPE, [1], SEEN)

    with pytest.raises(NotAllowed, match="another table or condition"):
        confirmations.redeem(token, scope, params)


def test_a_token_that_was_tried_on_something_else_is_used_up(
    confirmations: Confirmations,
) -> None:
    """Tokens must not be tried until one fits."""
    token = confirmations.issue(SCOPE, [1], SEEN)
    with pytest.raises(NotAllowed):
        confirmations.redeem(token, SCOPE, [2])

    with pytest.raises(NotAllowed, match="unknown or was used"):
        confirmations.redeem(token, SCOPE, [1])


@pytest.mark.parametrize("token", ["", "made-up"])
def test_without_a_real_token_nothing_is_confirmed(
    confirmations: Confirmations, token: str
) -> None:
    """An agent might invent one."""
    with pytest.raises(NotAllowed, match="ask for a new one"):
        confirmations.redeem(token, SCOPE, [1])


def test_unused_tokens_are_dropped(confirmations: Confirmations) -> None:
    """An agent that only asks for tokens must not fill the memory."""
    first, *_, last = [confirmations.issue(SCOPE, [n], SEEN) for n in range(MOST_OPEN + 1)]

    confirmations.redeem(last, SCOPE, [MOST_OPEN])
    with pytest.raises(NotAllowed, match="unknown"):
        confirmations.redeem(first, SCOPE, [0])
