"""The phases and stages of a session, the decisions at its gates, and how it can end."""

from __future__ import annotations

from enum import StrEnum


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
