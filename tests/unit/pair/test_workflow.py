from typing import Any

import pytest

from signoff.pair.workflow import choose, decided_turn, final_turn, turn_lines


def judged(approved: bool, score: float | None) -> dict[str, Any]:
    return {"approved": approved, "score": score}


@pytest.mark.parametrize(
    ("candidates", "chosen"),
    [
        ([judged(False, 9), judged(True, 1)], 1),
        ([judged(True, 5), judged(True, 7), judged(False, 9)], 1),
        ([judged(False, 3), judged(False, 8), judged(False, 8)], 1),
        ([judged(False, None), judged(False, None)], 0),
        ([judged(False, None), judged(False, 0)], 1),
    ],
)
def test_an_approved_candidate_is_chosen_then_the_best_then_the_first(
    candidates: list[dict[str, Any]], chosen: int
) -> None:
    """The writer continues with one of them only."""
    assert choose(candidates) == chosen


def turn(number: int, score: float | None, approved: bool = False) -> dict[str, Any]:
    return {"turn": number, "score": score, "approved": approved}


@pytest.mark.parametrize(
    ("turns", "keep", "number"),
    [
        ([turn(1, 9), turn(2, 1)], "last", 2),
        ([turn(1, 9), turn(2, 1)], "best", 1),
        ([turn(1, 4), turn(2, 4)], "best", 2),
        ([turn(1, None), turn(2, None)], "best", 2),
        ([turn(1, 9), turn(2, 1, approved=True)], "best", 2),
    ],
)
def test_the_result_is_the_last_turn_or_the_best(
    turns: list[dict[str, Any]], keep: str, number: int
) -> None:
    """An approved text is always the result."""
    assert final_turn(turns, keep)["turn"] == number


def test_a_turn_is_shown_with_its_verdict_and_feedback() -> None:
    """Users follow a session by these lines."""
    review = {"reviewer": "a", "approved": False, "feedback": "Longer.", "score": 6.5}
    record = decided_turn(2, [{"text": "Sip", "too_long": False}], [[review]], 1.0)

    assert list(turn_lines(record, 5)) == [
        "turn 2 of 5: Sip",
        "asks for changes, score 6.5",
        "feedback: Longer.",
    ]


def test_nothing_is_approved_without_a_review() -> None:
    """An empty list of reviews must not count as unanimous."""
    record = decided_turn(1, [{"text": "Sip", "too_long": False}], [[]], 1.0)

    assert not record["approved"]
