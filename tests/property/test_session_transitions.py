"""No sequence of commands leaves the transition table of sessions."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from signoff.profiles.transitions import (
    SessionCommand,
    TransitionTable,
    WorkflowPhase,
    WorkflowStage,
)

COMMANDS = st.lists(st.sampled_from([*SessionCommand, "step", "APPROVE", ""]), max_size=60)
ENDS = {WorkflowPhase.COMPLETE, WorkflowPhase.CANCELLED}
WORK = {
    WorkflowPhase.PLAN,
    WorkflowPhase.GENERATE,
    WorkflowPhase.REVIEW,
    WorkflowPhase.REVISE,
}


@given(COMMANDS)
def test_a_session_is_always_at_a_position_that_exists(commands: list[str]) -> None:
    """A session at no position could be neither continued nor ended."""
    phase, stage = WorkflowPhase.INIT, None

    for command in commands:
        result = TransitionTable.get(phase, stage, command)
        if result is not None:
            assert phase not in ENDS
            phase, stage = result.phase, result.stage
        assert phase is not WorkflowPhase.ERROR
        assert (stage is not None) == (phase in WORK)
        assert stage is None or isinstance(stage, WorkflowStage)


@given(COMMANDS)
def test_every_phase_passes_both_of_its_gates(commands: list[str]) -> None:
    """No sequence of commands reaches a response without its prompt, or skips a review."""
    phase, stage = WorkflowPhase.INIT, None
    visited: list[tuple[WorkflowPhase, WorkflowStage | None]] = [(phase, stage)]

    for command in commands:
        result = TransitionTable.get(phase, stage, command)
        if result is not None and (result.phase, result.stage) != (phase, stage):
            phase, stage = result.phase, result.stage
            visited.append((phase, stage))

    for before, after in pairwise(visited):
        if after[1] is WorkflowStage.RESPONSE:
            assert before == (after[0], WorkflowStage.PROMPT)
        if after[0] in (WorkflowPhase.COMPLETE, WorkflowPhase.REVISE) and after[0] != before[0]:
            assert before == (WorkflowPhase.REVIEW, WorkflowStage.RESPONSE)


@given(COMMANDS)
def test_a_session_can_always_be_cancelled_until_it_ends(commands: list[str]) -> None:
    """There is no position that a user cannot leave."""
    phase, stage = WorkflowPhase.INIT, None

    for command in commands:
        result = TransitionTable.get(phase, stage, command)
        if result is not None:
            phase, stage = result.phase, result.stage

    cancelled = TransitionTable.get(phase, stage, "cancel")
    assert (cancelled is None) == (phase in ENDS)
