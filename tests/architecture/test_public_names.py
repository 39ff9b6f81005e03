import signoff

NAMES = """
AgentRequest AgentRole Answer Append Approval Arg BoundedInt CheckedReply Choice ChoiceSet
CommandResult Condition Constant Dispatch Edge End Failure Gate GateOption Limits OnCrash
Option Otherwise Outcome Param Question Questions Reply Response RunResult SignoffError Spend
Status StepContext StepDef StepFailed StepOutput Usage UserQuestion Workflow __version__ answer
resume resume_async resume_context run run_async
""".split()


def test_the_public_names_are_these() -> None:
    """Removing a name breaks users' imports; a new name is a promise to keep it."""
    assert sorted(signoff.__all__) == NAMES
    assert all(getattr(signoff, name) is not None for name in NAMES)
