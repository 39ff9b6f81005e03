"""The values that profiles, providers and a session exchange, and a session's state.

All of them refuse unknown fields: a misspelled one would otherwise be lost without a word.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from signoff.profiles.transitions import (
    Action,
    ApprovalDecision,
    WorkflowPhase,
    WorkflowStage,
    WorkflowStatus,
)


class ProfileModel(BaseModel):
    """A value that refuses unknown fields, and invalid ones even when they are assigned later."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, defer_build=True)


class WriteOp(ProfileModel):
    """A file that a profile wants to have written."""

    path: str
    """A file name or a relative path; the engine checks it and puts it below `code/`."""
    content: str


class WritePlan(ProfileModel):
    """All files that a profile found in a response."""

    writes: list[WriteOp] = []


class Artifact(ProfileModel):
    """A file that the engine wrote."""

    path: str
    """Relative to the run's folder, such as `iteration-1/code/user.py`."""
    phase: WorkflowPhase
    """The phase whose response contained it."""
    iteration: int = Field(ge=1)
    sha256: str
    created_at: datetime | None = None


class ProcessingResult(ProfileModel):
    """What a profile found in a response."""

    status: WorkflowStatus
    write_plan: WritePlan | None = None
    """The files for the engine to write."""
    metadata: dict[str, Any] = {}
    """What belongs to the phase, such as the `verdict` of a review."""
    approved: bool = False
    artifacts: list[Artifact] = []
    error_message: str | None = None
    """Why the response cannot be used."""
    messages: list[str] = []


class ApprovalResult(ProfileModel):
    """The decision of an approver, with its reason."""

    model_config = ConfigDict(frozen=True)

    decision: ApprovalDecision
    feedback: str | None = None
    """What has to change; required for a rejection."""
    suggested_content: str | None = None
    """A better version of the file."""

    @model_validator(mode="after")
    def _rejection_has_a_reason(self) -> Self:
        if self.decision is ApprovalDecision.REJECTED and not (self.feedback or "").strip():
            raise ValueError("a rejection needs feedback: say what has to change")
        return self


class AIProviderResult(ProfileModel):
    """What a provider produced."""

    files: dict[str, str | None] = {}
    """Text by path; None for a file that the provider wrote itself."""
    response: str | None = None
    """The text of the response file."""


class PhaseTransition(ProfileModel):
    """One entry in the history of a session."""

    phase: WorkflowPhase
    status: WorkflowStatus
    timestamp: datetime


class WorkflowState(ProfileModel):
    """Everything about a session that can be looked up."""

    session_id: str
    profile: str
    phase: WorkflowPhase
    stage: WorkflowStage | None = None
    """None at the start and at the end."""
    status: WorkflowStatus
    current_iteration: int = Field(1, ge=1)
    """Increases when a review fails."""
    context: dict[str, Any] = {}
    """The profile's own data; no other field belongs to a profile."""
    ai_providers: dict[str, str] = {}
    """The provider for each role."""

    standards_provider: str | None = None
    standards_hash: str
    """The sha256 of the standards bundle; 64 zeros until it exists."""
    plan_approved: bool = False
    plan_hash: str | None = None
    """The sha256 of the approved plan."""
    prompt_hashes: dict[str, str] = {}
    """The sha256 of each approved prompt by its path, if the settings ask for them."""
    review_approved: bool = False
    review_hash: str | None = None
    artifacts: list[Artifact] = []
    metadata: dict[str, Any] = {}

    pending_action: Action | None = None
    pending_approval: bool = False
    """Whether the session waits at a gate."""
    last_error: str | None = None
    approval_feedback: str | None = None
    """Why the current file was rejected."""
    suggested_content: str | None = None
    """What the approver would have written."""
    retry_count: int = Field(0, ge=0)
    """Rejections by the approver of the current stage."""

    created_at: datetime | None = None
    updated_at: datetime | None = None
    phase_history: list[PhaseTransition] = []
    run: dict[str, Any] = {}
    """In `state.json`, what every run records: its name, status, step, spend and limits."""
    messages: list[str] = Field([], exclude=True)
    """Progress for the user who is watching; not stored."""
