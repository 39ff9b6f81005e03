from datetime import UTC, timedelta

import pytest

from signoff.pair import (
    AgentRole,
    CompletionReason,
    IterationSession,
    Turn,
    should_continue_iteration,
)


def session(*slogans: str) -> IterationSession:
    turns = [
        Turn(turn_number=number, slogan=slogan, feedback="no", approved=False)
        for number, slogan in enumerate(slogans, start=1)
    ]
    return IterationSession(user_input="x", model_name="m", max_turns=5, turns=turns)


def test_a_session_can_be_built_and_changed_field_by_field() -> None:
    """Programs that keep their own loop use the models alone."""
    session = IterationSession(user_input="water bottles", model_name="mistral", max_turns=5)

    assert (session.turns, session.turn_count, session.final_slogan) == ([], 0, None)
    assert session.completion_reason is None
    assert session.duration is None
    assert not session.succeeded

    turn = Turn(turn_number=1, slogan="Sip", feedback=None, approved=True)
    session.turns.append(turn)
    session.final_slogan = "Sip"
    session.completion_reason = CompletionReason.APPROVED
    session.turn_count = 1
    session.completed_at = session.created_at + timedelta(seconds=3)

    assert session.succeeded
    assert session.duration == timedelta(seconds=3)
    assert turn.timestamp.tzinfo is UTC
    assert IterationSession.model_validate_json(session.model_dump_json()) == session


def test_the_enums_have_the_values_that_programs_store() -> None:
    """They are part of JSON that others read."""
    assert [each.value for each in CompletionReason] == [
        "approved",
        "max_turns",
        "converged",
        "error",
        "cancelled",
    ]
    assert CompletionReason("cancelled") is CompletionReason.USER_CANCELLED
    assert [each.value for each in AgentRole] == ["writer", "reviewer"]


@pytest.mark.parametrize(
    ("turn", "most", "approved", "continues"),
    [(1, 5, False, True), (1, 5, True, False), (5, 5, False, False), (6, 5, False, False)],
)
def test_a_turn_follows_unless_the_text_is_approved_or_it_was_the_last(
    turn: int, most: int, approved: bool, continues: bool
) -> None:
    """The rule by which every pair goes."""
    assert should_continue_iteration(turn, most, approved) is continues
