import pytest

from signoff.profiles import WorkflowPhase, WorkflowStage
from signoff.profiles.session import code_folder, revision_issues_path, stage_path


@pytest.mark.parametrize(
    ("phase", "stage", "path"),
    [
        (WorkflowPhase.PLAN, WorkflowStage.PROMPT, "iteration-1/planning-prompt.md"),
        (WorkflowPhase.GENERATE, WorkflowStage.RESPONSE, "iteration-1/generation-response.md"),
        (WorkflowPhase.REVIEW, WorkflowStage.PROMPT, "iteration-1/review-prompt.md"),
        (WorkflowPhase.REVISE, WorkflowStage.RESPONSE, "iteration-1/revision-response.md"),
    ],
)
def test_files_are_named_after_their_phase(
    phase: WorkflowPhase, stage: WorkflowStage, path: str
) -> None:
    """Users and their scripts know these names."""
    assert stage_path(phase, stage, 1) == path


def test_every_iteration_has_its_own_folder() -> None:
    """Nothing of an earlier iteration is overwritten."""
    assert code_folder(3) == "iteration-3/code"
    assert revision_issues_path(2) == "iteration-2/revision-issues.md"
