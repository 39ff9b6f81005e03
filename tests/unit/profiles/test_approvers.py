from signoff.profiles import ApprovalDecision, WorkflowPhase, WorkflowStage
from signoff.profiles.factories import ApprovalProviderFactory


def test_a_manual_gate_waits_and_a_skipped_one_approves() -> None:
    """Neither looks at the file."""
    decisions = {
        key: ApprovalProviderFactory.create(key)
        .evaluate(
            phase=WorkflowPhase.PLAN, stage=WorkflowStage.PROMPT, files={"a": None}, context={}
        )
        .decision
        for key in ("manual", "skip")
    }

    assert decisions == {"manual": ApprovalDecision.PENDING, "skip": ApprovalDecision.APPROVED}
