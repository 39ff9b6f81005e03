from typing import Any

import pytest

from signoff.contracts.compile import param_names
from signoff.contracts.model import Condition, ConditionalNext, WorkflowDefinition, WorkflowStep


def of(step: WorkflowStep, **more: Any) -> frozenset[str] | None:
    return param_names(WorkflowDefinition("x", [step], **more))


def test_names_in_prompts_and_expressions_are_the_parameters() -> None:
    """A parameter that the contract never uses is a typo, and is refused at the start."""
    step = WorkflowStep(
        "a",
        prompt="Write about {{ topic }} for {{item}}, as in {{draft.text}}.",
        parallel_key="chapters",
        postconditions=[Condition("long", "size(result.text) > params.words")],
        next=ConditionalNext("params.again == 'yes'", on_true="a", on_false="a"),
    )

    assert of(step) == frozenset({"topic", "draft", "chapters", "words", "again"})


@pytest.mark.parametrize(
    "step",
    [
        WorkflowStep("a", command=["make"]),
        WorkflowStep("a", prompt="x", postconditions=[Condition("ok", lambda _ctx: True)]),
        WorkflowStep("a", prompt="x", postconditions=[Condition("ok", "'a' in params")]),
    ],
    ids=["program", "function", "all of them"],
)
def test_a_workflow_with_code_accepts_any_parameter(step: WorkflowStep) -> None:
    """A program may read parameters that the contract does not mention."""
    assert of(step) is None


def test_declared_parameters_are_the_only_ones() -> None:
    """Authors of programs declare parameters so that typos are refused."""
    assert of(WorkflowStep("a", command=["make"]), params=["a"]) == frozenset({"a"})
