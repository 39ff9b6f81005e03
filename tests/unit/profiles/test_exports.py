from signoff import profiles

NAMES = """
AIApprovalProvider AIProvider AIProviderFactory AIProviderResult Action ApprovalDecision
ApprovalProvider ApprovalProviderFactory ApprovalResult Artifact FsAbility PhaseTransition
ProcessingResult ProfileFactory ReviewMeta StandardsProvider StandardsProviderFactory
TemplateProfile TransitionResult TransitionTable WorkflowPhase WorkflowProfile WorkflowStage
WorkflowState WorkflowStatus WriteOp WritePlan find_code_files format_code_files
parse_review_meta render_template
""".split()


def test_the_public_names_are_these() -> None:
    """Removing a name breaks an import of a profile."""
    assert profiles.__all__ == NAMES
    assert all(getattr(profiles, name) is not None for name in NAMES)
    assert dir(profiles) == NAMES
