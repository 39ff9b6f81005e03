import pytest

from signoff.profiles.transitions import (
    Action,
    SessionCommand,
    TransitionResult,
    TransitionTable,
    WorkflowPhase,
    WorkflowStage,
)
from tests.tables import table

ROWS = [
    ("init", None, "init", "plan", "prompt", "create_prompt"),
    ("init", None, "cancel", "cancelled", None, "cancel"),
    ("plan", "prompt", "approve", "plan", "response", "call_ai"),
    ("generate", "prompt", "approve", "generate", "response", "call_ai"),
    ("review", "prompt", "approve", "review", "response", "call_ai"),
    ("revise", "prompt", "approve", "revise", "response", "call_ai"),
    ("plan", "prompt", "cancel", "cancelled", None, "cancel"),
    ("generate", "prompt", "cancel", "cancelled", None, "cancel"),
    ("review", "prompt", "cancel", "cancelled", None, "cancel"),
    ("revise", "prompt", "cancel", "cancelled", None, "cancel"),
    ("plan", "response", "approve", "generate", "prompt", "create_prompt"),
    ("generate", "response", "approve", "review", "prompt", "create_prompt"),
    ("revise", "response", "approve", "review", "prompt", "create_prompt"),
    ("review", "response", "approve", "review", "response", "check_verdict"),
    ("review", "response", "approve_complete", "complete", None, "finalize"),
    ("review", "response", "approve_revise", "revise", "prompt", "create_prompt"),
    ("plan", "response", "reject", "plan", "response", "halt"),
    ("generate", "response", "reject", "generate", "response", "halt"),
    ("review", "response", "reject", "review", "response", "halt"),
    ("revise", "response", "reject", "revise", "response", "halt"),
    ("plan", "response", "cancel", "cancelled", None, "cancel"),
    ("generate", "response", "cancel", "cancelled", None, "cancel"),
    ("review", "response", "cancel", "cancelled", None, "cancel"),
    ("revise", "response", "cancel", "cancelled", None, "cancel"),
]
"""The 24 transitions, written out: the table itself is built from rules."""

POSITIONS = [
    (WorkflowPhase(phase), stage) for phase in WorkflowPhase for stage in (None, *WorkflowStage)
]


@table(("phase", "stage", "command", "to_phase", "to_stage", "action"), ROWS)
def test_a_command_leads_where_the_table_says(
    phase: str, stage: str | None, command: str, to_phase: str, to_stage: str | None, action: str
) -> None:
    """A session that goes somewhere else skips a gate."""
    result = TransitionTable.get(
        WorkflowPhase(phase), WorkflowStage(stage) if stage else None, command
    )

    assert result == TransitionResult(
        WorkflowPhase(to_phase), WorkflowStage(to_stage) if to_stage else None, Action(action)
    )


def test_the_table_has_no_other_rows() -> None:
    """A row too many is a way around a gate."""
    assert {(*key,) for key in TransitionTable.rows} == {row[:3] for row in ROWS}


@table(
    ("phase", "stage", "command"),
    [
        (*position, command)
        for position in POSITIONS
        for command in (*SessionCommand, "step", "Approve", "approve ", "")
    ],
)
def test_everything_else_is_not_allowed(
    phase: WorkflowPhase, stage: WorkflowStage | None, command: str
) -> None:
    """Not from the end, not with an unknown command, and a prompt cannot be rejected."""
    expected = any(row[:3] == (phase, stage, command) for row in ROWS)

    assert (TransitionTable.get(phase, stage, command) is not None) == expected


def test_the_allowed_commands_of_a_position_can_be_listed() -> None:
    """A refused command is answered with those that would work."""
    review = TransitionTable.commands(WorkflowPhase.REVIEW, WorkflowStage.RESPONSE)

    assert set(review) == {"approve", "approve_complete", "approve_revise", "reject", "cancel"}
    assert set(TransitionTable.commands(WorkflowPhase.INIT, None)) == {"init", "cancel"}
    assert TransitionTable.commands(WorkflowPhase.COMPLETE, None) == ()


def test_the_table_cannot_be_changed() -> None:
    """A plug-in that adds a row would change every session of the process."""
    key = (WorkflowPhase.COMPLETE, None, SessionCommand.APPROVE)
    result = TransitionResult(WorkflowPhase.PLAN, WorkflowStage.PROMPT, Action.CREATE_PROMPT)

    with pytest.raises(TypeError):
        TransitionTable.rows[key] = result  # type: ignore[index]
