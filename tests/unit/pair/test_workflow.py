from signoff.pair.workflow import decided_turn, turn_lines


def test_a_turn_is_shown_with_its_verdict_and_feedback() -> None:
    """Users follow a session by these lines."""
    review = {"reviewer": "a", "approved": False, "feedback": "Longer.", "score": 6.5}
    record = decided_turn(2, {"text": "Sip", "too_long": False}, [review], 1.0)

    assert list(turn_lines(record, 5)) == [
        "turn 2 of 5: Sip",
        "asks for changes, score 6.5",
        "feedback: Longer.",
    ]


def test_nothing_is_approved_without_a_review() -> None:
    """An empty list of reviews must not count as unanimous."""
    record = decided_turn(1, {"text": "Sip", "too_long": False}, [], 1.0)

    assert not record["approved"]
