"""The session of a pair: all its turns and how it ended, built from the state of its run.

Its errors:

WorkflowError
├── AgentError                  a writer or reviewer cannot be used, or failed
│   └── ModelNotFoundError      the server does not have the model (those it has are listed)
├── ApprovalTimeoutError        the text did not pass within the allowed turns
└── ConfigurationError          values that cannot be used (all of them listed)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field

from signoff.core import errors
from signoff.core.outcome import Status
from signoff.core.remedies import PassOption
from signoff.review.pure.similarity import has_converged
from signoff.runtime.result import RunResult


class CompletionReason(StrEnum):
    """Why a session ended."""

    APPROVED = "approved"
    MAX_TURNS = "max_turns"
    CONVERGED = "converged"
    """The text has stopped changing."""
    ERROR = "error"
    USER_CANCELLED = "cancelled"


REASONS: Mapping[Status, CompletionReason] = {
    Status.COMPLETED: CompletionReason.APPROVED,
    Status.LIMIT: CompletionReason.MAX_TURNS,
    Status.NOT_CONVERGING: CompletionReason.CONVERGED,
    Status.FAILED: CompletionReason.ERROR,
    Status.CANCELLED: CompletionReason.USER_CANCELLED,
}
"""How each status of a run ends its session. One that waits, or is out of budget, can continue."""


class AgentRole(StrEnum):
    """The two roles of a pair."""

    WRITER = "writer"
    REVIEWER = "reviewer"


def _now() -> datetime:
    return datetime.now(UTC)


class SessionModel(BaseModel):
    """A record that can be built and changed field by field."""

    model_config = ConfigDict(
        protected_namespaces=(), validate_assignment=True, populate_by_name=True
    )


class Review(SessionModel):
    """What one reviewer decided."""

    reviewer: str
    approved: bool
    feedback: str = ""
    score: float | None = None


class Turn(SessionModel):
    """One exchange between the writer and its reviewers; a run's record has shorter names."""

    turn_number: int = Field(validation_alias="turn")
    slogan: str = Field(validation_alias="text")
    """What was written, whatever the preset."""
    feedback: str | None = None
    """What has to change; None if it was approved."""
    approved: bool
    timestamp: datetime = Field(default_factory=_now, validation_alias="at")
    score: float | None = None
    too_long: bool = False
    """Whether it is longer than allowed even after it was sent back."""
    reviews: list[Review] = Field(default_factory=list)


class IterationSession(SessionModel):
    """The record of a pair from its first turn to its end."""

    user_input: str
    model_name: str | None = None
    max_turns: int
    turns: list[Turn] = Field(default_factory=list)
    turn_count: int = 0
    final_slogan: str | None = None
    """The result, whatever the preset."""
    completion_reason: CompletionReason | None = None
    """None while it can continue: it waits, or its budget is used up."""
    created_at: datetime = Field(default_factory=_now)
    completed_at: datetime | None = None
    error: str | None = None
    """Why it stopped, if it did not come to a result."""
    error_kind: str | None = None
    """The kind of the error in a turn, such as AgentTimeout."""
    run: str = ""
    """The name of its run."""

    @property
    def duration(self) -> timedelta | None:
        """How long it took; None if it has not ended."""
        return self.completed_at - self.created_at if self.completed_at is not None else None

    @property
    def succeeded(self) -> bool:
        """Whether the result was approved."""
        return self.completion_reason is CompletionReason.APPROVED


def should_stop_early(session: IterationSession) -> bool:
    """Returns whether the last two of at least three turns are nearly the same."""
    return has_converged([turn.slogan for turn in session.turns])


def session_of(result: RunResult) -> IterationSession:
    """Returns the session of a run as far as it has come."""
    # A run that waits or is out of budget has no reason: it can continue, so it has not ended.
    reason, state = REASONS.get(result.status), result.state
    has_result = reason in _WITH_RESULT
    turns = [Turn.model_validate(each) for each in state.get("turns", ())]
    return IterationSession(
        user_input=state.get("task", ""),
        model_name=state.get("model_name"),
        max_turns=state.get("max_turns", 0),
        turns=turns,
        turn_count=len(turns),
        final_slogan=state.get("final") if has_result else None,
        completion_reason=reason,
        created_at=_moment(result.started_at),
        completed_at=_moment(result.updated_at) if reason is not None else None,
        error=None if has_result else result.reason or result.status.value,
        error_kind=result.error.kind if result.error is not None else None,
        run=result.run,
    )


_WITH_RESULT = frozenset(
    {CompletionReason.APPROVED, CompletionReason.MAX_TURNS, CompletionReason.CONVERGED}
)


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


class WorkflowError(errors.SignoffError):
    """A pair did not get to its end."""

    def __init__(
        self,
        message: str = "",
        *,
        session: IterationSession | None = None,
        remedy: errors.Remedies = (),
    ) -> None:
        self.session = session
        """What was done until then; None if nothing was started."""
        super().__init__(message, remedy=remedy)


class AgentError(WorkflowError):
    """A writer or a reviewer cannot be used."""

    is_transient: bool = False
    """Whether another try may help, as for a server that is down."""
    no_server: bool = False
    """Whether nothing answers where the Ollama server should be, or nothing can ask it."""


class ModelNotFoundError(AgentError, errors.UsageError):
    """The server does not have the model."""

    def __init__(self, message: str = "", *, available: Sequence[str] = ()) -> None:
        self.available = tuple(available)
        super().__init__(
            f"{message}; available models: {', '.join(available) or 'none'}",
            remedy=tuple(PassOption("model", each) for each in available[:1]),
        )


class ApprovalTimeoutError(WorkflowError):
    """The text did not pass within the allowed turns."""


class ConfigurationError(WorkflowError, errors.ConfigError):
    """The configuration of the pair cannot be used."""

    def __init__(self, problems: Sequence[errors.Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, problems)))
