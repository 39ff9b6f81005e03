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
    WorkflowPhase,
    WorkflowStage,
    WorkflowStatus,
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


def test_a_profile_builds_a_result_from_the_fields_of_the_specification() -> None:
    """The other fields are optional."""
    result = ProcessingResult(
        status=WorkflowStatus.SUCCESS,
        write_plan=WritePlan(writes=[WriteOp(path="User.java", content="class User {}")]),
        metadata={"verdict": "PASS"},
    )

    assert result.approved is False
    assert result.artifacts == []
    assert result.error_message is None
    assert result.messages == []


@pytest.mark.parametrize("feedback", [None, "", " \n\t"])
def test_a_rejection_needs_feedback(feedback: str | None) -> None:
    """Without it no one knows what to change."""
    with pytest.raises(ValidationError, match="say what has to change"):
        ApprovalResult(decision=ApprovalDecision.REJECTED, feedback=feedback)

    assert ApprovalResult(decision=ApprovalDecision.REJECTED, feedback="shorter").feedback


@pytest.mark.parametrize("decision", [ApprovalDecision.APPROVED, ApprovalDecision.PENDING])
def test_other_decisions_need_no_feedback(decision: ApprovalDecision) -> None:
    """There is nothing to say about them."""
    assert ApprovalResult(decision=decision).feedback is None


def test_a_decision_cannot_be_changed() -> None:
    """A rejection must not become an approval on its way."""
    result = ApprovalResult(decision=ApprovalDecision.REJECTED, feedback="shorter")

    with pytest.raises(ValidationError, match="frozen"):
        result.decision = ApprovalDecision.APPROVED  # type: ignore[misc]  # the mistake


def test_values_are_checked_when_they_are_assigned_too() -> None:
    """A profile may build its result step by step."""
    result = ProcessingResult(status=WorkflowStatus.SUCCESS)
    result.status = WorkflowStatus.FAILED

    with pytest.raises(ValidationError):
        result.status = "failure"  # type: ignore[assignment]  # the mistake


@pytest.mark.parametrize("iteration", [0, -1])
def test_iterations_are_counted_from_one(iteration: int) -> None:
    """The first folder is `iteration-1`."""
    with pytest.raises(ValidationError):
        Artifact(path="a", phase=WorkflowPhase.GENERATE, iteration=iteration, sha256="ab")
    with pytest.raises(ValidationError):
        WorkflowState.model_validate(VALID[-1][1] | {"current_iteration": iteration})


def test_a_state_starts_empty_and_at_the_first_iteration() -> None:
    """Nothing is approved, pending or wrong before anything happened."""
    state = WorkflowState.model_validate(VALID[-1][1])

    assert state.current_iteration == 1
    assert (state.plan_approved, state.review_approved, state.pending_approval) == (False,) * 3
    assert (state.stage, state.plan_hash, state.last_error, state.suggested_content) == (None,) * 4
    assert (state.artifacts, state.phase_history, state.context, state.prompt_hashes) == (
        [],
        [],
        {},
        {},
    )


def test_a_state_survives_being_stored_without_its_messages() -> None:
    """Messages are for the user who is watching."""
    history = PhaseTransition(
        phase=WorkflowPhase.PLAN, status=WorkflowStatus.IN_PROGRESS, timestamp=NOW
    )
    artifact = Artifact(
        path="a", phase=WorkflowPhase.GENERATE, iteration=2, sha256="ab", created_at=NOW
    )
    state = WorkflowState(
        session_id="s",
        profile="jpa-mt",
        phase=WorkflowPhase.REVIEW,
        stage=WorkflowStage.RESPONSE,
        status=WorkflowStatus.FAILED,
        standards_hash=NO_HASH,
        created_at=NOW,
        artifacts=[artifact],
        phase_history=[history],
        messages=["hello"],
    )

    stored = state.model_dump(mode="json")

    assert "messages" not in stored
    assert stored["phase"] == "review"
    assert WorkflowState.model_validate(stored) == state.model_copy(update={"messages": []})


def test_a_state_without_standards_is_refused() -> None:
    """Their hash is known to be missing, or known."""
    fields = {key: value for key, value in VALID[-1][1].items() if key != "standards_hash"}

    with pytest.raises(ValidationError, match="standards_hash"):
        WorkflowState.model_validate(fields)
