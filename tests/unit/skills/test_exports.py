import signoff
from signoff import skills
from signoff.skills import discover_workflows

SEED = """
AgentRole Arg BoundedInt ChoiceSet Confidence Constant Dispatch DocumentAvailability LoopState
Outcome QRStatus StepContext StepDef StepOutput Workflow discover_workflows format_step
""".split()


def test_the_framework_is_complete_in_one_package() -> None:
    """Readers of a skill look up every name in one place."""
    assert set(SEED) <= set(skills.__all__)
    assert all(getattr(skills, name) is not None for name in skills.__all__)


def test_the_types_of_the_engine_are_the_same_at_the_top_level() -> None:
    """A skill may import them from either."""
    shared = set(skills.__all__) & set(signoff.__all__)

    assert {"Workflow", "StepDef", "Outcome", "StepContext", "Arg", "Dispatch"} <= shared
    assert all(getattr(skills, name) is getattr(signoff, name) for name in shared)


def test_the_order_of_the_steps_is_the_index_of_step_numbers() -> None:
    """Tests of skills find the number of a step, and its parameters, there."""
    for workflow in discover_workflows().values():
        assert len(workflow._step_order) == workflow.total_steps
        assert list(workflow._params) == workflow._step_order
