from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from signoff.profiles.model import (
    AIProviderResult,
    ApprovalResult,
    Artifact,
    PhaseTransition,
    ProcessingResult,
    WorkflowState,
    WriteOp,
    WritePlan,
)
from signoff.profiles.transitions import (
    ApprovalDecision,
)
from signoff.profiles.view import NO_HASH

NOW = datetime(2026, 1, 2, tzinfo=UTC)

VALID: list[tuple[type[BaseModel], dict[str, Any]]] = [
    (WriteOp, {"path": "a.py", "content": ""}),
    (WritePlan, {"writes": []}),
    (Artifact, {"path": "a.py", "phase": "generate", "iteration": 1, "sha256": "ab"}),
    (ProcessingResult, {"status": "success"}),
    (ApprovalResult, {"decision": "approved"}),
    (AIProviderResult, {"response": "text"}),
    (PhaseTransition, {"phase": "plan", "status": "in_progress", "timestamp": NOW}),
    (
        WorkflowState,
        {
            "session_id": "s",
            "profile": "jpa-mt",
            "phase": "plan",
            "status": "in_progress",
            "standards_hash": NO_HASH,
        },
    ),
]


@pytest.mark.parametrize(("model", "fields"), VALID)
def test_unknown_fields_are_refused(model: type[BaseModel], fields: dict[str, Any]) -> None:
    """A misspelled field would be lost without a word."""
    model.model_validate(fields)

    with pytest.raises(ValidationError, match="artifact_type"):
        model.model_validate({**fields, "artifact_type": "code"})


@pytest.mark.parametrize("feedback", [None, "", " \n\t"])
def test_a_rejection_needs_feedback(feedback: str | None) -> None:
    """Without it no one knows what to change."""
    with pytest.raises(ValidationError, match="say what has to change"):
        ApprovalResult(decision=ApprovalDecision.REJECTED, feedback=feedback)

    assert ApprovalResult(decision=ApprovalDecision.REJECTED, feedback="shorter").feedback


def test_a_decision_cannot_be_changed() -> None:
    """A rejection must not become an approval on its way."""
    result = ApprovalResult(decision=ApprovalDecision.REJECTED, feedback="shorter")

    with pytest.raises(ValidationError, match="frozen"):
        result.decision = ApprovalDecision.APPROVED  # type: ignore[misc]  # the mistake
