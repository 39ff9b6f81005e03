import pytest

from signoff.flows.step import StepKind, WorkflowStep, keys_of, with_ids


@pytest.mark.parametrize(
    ("steps", "ids"),
    [
        ("generate critique adjudicate refine", "generate critique adjudicate refine"),
        ("generate critique critique", "generate critique_1 critique_2"),
        ("generate critique:a critique", "generate a critique"),
        ("generate adjudicate:critique critique", "generate critique critique_2"),
        ("generate:draft critique:a critique:b", "draft a b"),
    ],
)
def test_a_step_is_called_by_its_name_else_by_its_kind(steps: str, ids: str) -> None:
    """Files, logs and `loop_to` use these names; short ones where they are clear."""
    made = []
    for each in steps.split():
        kind, _, name = each.partition(":")
        made.append(WorkflowStep(step=StepKind(kind), name=name or None))

    assert [step.id for step in with_ids(made)] == ids.split()


def test_every_key_of_the_table_is_a_field() -> None:
    """A key that is valid and no field could not be read."""
    keys = {key for kind in StepKind for key in keys_of(kind)}

    assert keys == set(WorkflowStep.model_fields) - {"id"}
