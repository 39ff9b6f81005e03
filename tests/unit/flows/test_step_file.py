import pytest

from signoff.documents.sections import Section
from signoff.flows.model import StepKind, WorkflowStep
from signoff.flows.step_file import (
    OF_KIND,
    AdjudicateStep,
    CritiqueStep,
    GenerateStep,
    RefineStep,
    with_ids,
)


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
        made.append(WorkflowStep(StepKind(kind), name=name or None))

    assert [step.id for step in with_ids(made)] == ids.split()


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        (StepKind.GENERATE, GenerateStep),
        (StepKind.CRITIQUE, CritiqueStep),
        (StepKind.ADJUDICATE, AdjudicateStep),
        (StepKind.REFINE, RefineStep),
    ],
)
def test_the_table_of_fields_is_true(kind: StepKind, model: type[Section]) -> None:
    """The complaint about a field of another kind names that kind from the table."""
    common = {"step", "name", "agent", "model", "timeout"}

    assert set(model.model_fields) == common | OF_KIND[kind]
    assert set(model.misplaced_keys) == set().union(*OF_KIND.values()) - OF_KIND[kind]
