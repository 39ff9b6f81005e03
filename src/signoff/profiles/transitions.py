"""The phases of a session, and every transition between them as one table.

A session is at a phase and, except at its start and its end, at a stage of it. A command moves
it to the next position and says what happens there; a command without a row is not allowed. The
graph of a session is compiled from this table, so a new row is a new step or edge and no other
code decides where a session goes.

                 approve              approve                approve (PASS)
    INIT -> PLAN -------> GENERATE ----------> REVIEW --------------------> COMPLETE
                                               ^    |
                                       approve |    | approve (FAIL), which starts a round
                                               |    v
                                               REVISE

A review is the only response whose text decides what follows. Its `approve` row therefore leads
to itself with `check_verdict`, and the verdict selects one of the two rows that a user can also
select to overrule it: `approve_complete` and `approve_revise`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class WorkflowPhase(StrEnum):
    """What a session is working on."""

    INIT = "init"
    PLAN = "plan"
    GENERATE = "generate"
    REVIEW = "review"
    REVISE = "revise"
    COMPLETE = "complete"
    ERROR = "error"
    CANCELLED = "cancelled"


class WorkflowStage(StrEnum):
    """The half of a phase: first its prompt is created, then a provider responds to it."""

    PROMPT = "prompt"
    RESPONSE = "response"


class WorkflowStatus(StrEnum):
    """How a session is doing, or how it ended."""

    IN_PROGRESS = "in_progress"
    SUCCESS = "success"
    FAILED = "failed"
    """No review passed within the allowed rounds."""
    ERROR = "error"
    CANCELLED = "cancelled"


class ApprovalDecision(StrEnum):
    """What an approver decided."""

    APPROVED = "approved"
    REJECTED = "rejected"
    PENDING = "pending"
    """A human decides."""


class Action(StrEnum):
    """What happens at the new position."""

    CREATE_PROMPT = "create_prompt"
    CALL_AI = "call_ai"
    CHECK_VERDICT = "check_verdict"
    """The verdict of the review selects the next transition."""
    FINALIZE = "finalize"
    HALT = "halt"
    """The session waits for a better response."""
    CANCEL = "cancel"


class SessionCommand(StrEnum):
    """What moves a session."""

    INIT = "init"
    APPROVE = "approve"
    APPROVE_COMPLETE = "approve_complete"
    """Finish, whatever the review's verdict is."""
    APPROVE_REVISE = "approve_revise"
    """Revise, whatever the review's verdict is."""
    REJECT = "reject"
    CANCEL = "cancel"


@dataclass(frozen=True)
class TransitionResult:
    """Where a command leads, and what happens there."""

    phase: WorkflowPhase
    stage: WorkflowStage | None
    """None for a phase without stages."""
    action: Action


TransitionKey = tuple[WorkflowPhase, WorkflowStage | None, SessionCommand]

_WORK = (WorkflowPhase.PLAN, WorkflowPhase.GENERATE, WorkflowPhase.REVIEW, WorkflowPhase.REVISE)
"""The phases that have a prompt and a response."""

_NEXT_PHASE = {
    WorkflowPhase.PLAN: WorkflowPhase.GENERATE,
    WorkflowPhase.GENERATE: WorkflowPhase.REVIEW,
    WorkflowPhase.REVISE: WorkflowPhase.REVIEW,
}
"""What follows an approved response; after a review, its verdict decides."""

_CANCELLED = TransitionResult(WorkflowPhase.CANCELLED, None, Action.CANCEL)
_REVIEWED = (WorkflowPhase.REVIEW, WorkflowStage.RESPONSE)


def _prompt_of(phase: WorkflowPhase) -> TransitionResult:
    return TransitionResult(phase, WorkflowStage.PROMPT, Action.CREATE_PROMPT)


def _response_of(phase: WorkflowPhase, action: Action) -> TransitionResult:
    return TransitionResult(phase, WorkflowStage.RESPONSE, action)


# A rejection of a prompt has no row: a prompt has no provider that could answer again, so the
# session waits at the gate until its user has edited the file.
_ROWS: dict[TransitionKey, TransitionResult] = {
    (WorkflowPhase.INIT, None, SessionCommand.INIT): _prompt_of(WorkflowPhase.PLAN),
    (WorkflowPhase.INIT, None, SessionCommand.CANCEL): _CANCELLED,
    **{
        (phase, WorkflowStage.PROMPT, SessionCommand.APPROVE): _response_of(phase, Action.CALL_AI)
        for phase in _WORK
    },
    **{
        (phase, WorkflowStage.RESPONSE, SessionCommand.APPROVE): _prompt_of(following)
        for phase, following in _NEXT_PHASE.items()
    },
    (*_REVIEWED, SessionCommand.APPROVE): _response_of(WorkflowPhase.REVIEW, Action.CHECK_VERDICT),
    (*_REVIEWED, SessionCommand.APPROVE_COMPLETE): TransitionResult(
        WorkflowPhase.COMPLETE, None, Action.FINALIZE
    ),
    (*_REVIEWED, SessionCommand.APPROVE_REVISE): _prompt_of(WorkflowPhase.REVISE),
    **{
        (phase, WorkflowStage.RESPONSE, SessionCommand.REJECT): _response_of(phase, Action.HALT)
        for phase in _WORK
    },
    **{
        (phase, stage, SessionCommand.CANCEL): _CANCELLED
        for phase in _WORK
        for stage in WorkflowStage
    },
}


class TransitionTable:
    """The transitions of a session; used through the class."""

    rows: Mapping[TransitionKey, TransitionResult] = MappingProxyType(_ROWS)
    """Every transition that is allowed."""

    @classmethod
    def get(
        cls, phase: WorkflowPhase, stage: WorkflowStage | None, command: str
    ) -> TransitionResult | None:
        """Returns where a command leads; None if it is not allowed there."""
        # The members of a `StrEnum` are found by the equal string.
        return cls.rows.get((phase, stage, command))  # type: ignore[arg-type]

    @classmethod
    def commands(
        cls, phase: WorkflowPhase, stage: WorkflowStage | None
    ) -> tuple[SessionCommand, ...]:
        """Returns the commands that are allowed at a position."""
        return tuple(command for *at, command in cls.rows if at == [phase, stage])
