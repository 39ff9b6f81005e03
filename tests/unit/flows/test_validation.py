from dataclasses import replace
from typing import Any

import pytest

from signoff.flows.model import (
    ConstraintConfig,
    GenflowConfig,
    RoutingConfig,
    StepKind,
    WorkflowStep,
)
from signoff.flows.validation import validate_workflow
from signoff.review.constraint import Constraint

GENERATE = WorkflowStep(StepKind.GENERATE)
CRITIQUE = WorkflowStep(StepKind.CRITIQUE)
ADJUDICATE = WorkflowStep(StepKind.ADJUDICATE)
REFINE = WorkflowStep(StepKind.REFINE)


def complaints(*steps: WorkflowStep, **fields: Any) -> list[str]:
    return [str(problem) for problem in validate_workflow(GenflowConfig(steps, **fields))]


def complaint(*steps: WorkflowStep, **fields: Any) -> str:
    (line,) = complaints(*steps, **fields)
    return line


def test_the_usual_flow_has_no_problems() -> None:
    """A check that cries wolf is turned off."""
    assert complaints(GENERATE, CRITIQUE, ADJUDICATE, REFINE) == []
    assert complaints(GENERATE, CRITIQUE, ADJUDICATE, replace(REFINE, loop_to="critique")) == []


def test_a_flow_begins_by_making_something() -> None:
    """Critics, judges and refiners need an artifact."""
    assert "workflow is empty" in complaint()
    assert "there is no generate step" in complaint(CRITIQUE, ADJUDICATE)
    assert "the first step is critique" in complaint(CRITIQUE, GENERATE)
    assert "the first step is adjudicate" in complaint(ADJUDICATE, GENERATE)


def test_only_what_was_judged_can_be_refined() -> None:
    """A refine step works from a judge's bill of work."""
    early = complaint(GENERATE, CRITIQUE, REFINE, ADJUDICATE)

    assert early == (
        "workflow[2]: the refine step at 2 comes before any adjudicate step "
        "(only a judge says what to mend)"
    )


def test_two_steps_of_one_name_are_refused() -> None:
    """A loop to it would lead to either."""
    named = replace(CRITIQUE, name="review")

    assert "'review' is the name of workflow[1] and of workflow[2]" in complaint(
        GENERATE, named, named
    )
    assert "'critique_2' is the name of" in complaint(
        GENERATE, replace(CRITIQUE, name="critique_2"), CRITIQUE, CRITIQUE
    )
    assert "letters, digits" in complaint(replace(GENERATE, name="a/b"))


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nowhere", "which is no step (one of: generate, review, judge)"),
        ("late", "which comes no earlier"),
        ("refine", "which comes no earlier"),
    ],
)
def test_a_loop_leads_to_an_earlier_step(target: str, words: str) -> None:
    """Any other jump would skip work or go nowhere."""
    steps = (
        GENERATE,
        replace(CRITIQUE, name="review"),
        replace(ADJUDICATE, name="judge"),
        replace(REFINE, loop_to=target),
        replace(CRITIQUE, name="late"),
    )

    assert words in complaint(*steps)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (replace(CRITIQUE, loop_to="generate"), "only refine steps have it"),
        (replace(CRITIQUE, scope="all"), "only adjudicate steps have it"),
        (replace(GENERATE, constraints=("a",)), "only critique steps have it"),
        (replace(ADJUDICATE, mode="rewrite"), "only refine steps have it"),
        (replace(CRITIQUE, on_approved="finish"), "only adjudicate steps have it"),
    ],
)
def test_a_field_of_another_kind_of_step_is_refused(step: WorkflowStep, words: str) -> None:
    """It would do nothing, and somebody expects something of it."""
    assert words in complaint(GENERATE, CRITIQUE, step)


@pytest.mark.parametrize(
    ("step", "field", "valid"),
    [
        (CRITIQUE, "execution", "parallel, serial"),
        (CRITIQUE, "order", "priority, definition"),
        (ADJUDICATE, "scope", "accumulated, previous, all"),
        (ADJUDICATE, "on_approved", "finish, continue"),
        (REFINE, "mode", "edit, rewrite, apply"),
        (REFINE, "on_invalid", "continue, escalate"),
    ],
)
def test_a_value_nobody_knows_is_answered_with_the_known_ones(
    step: WorkflowStep, field: str, valid: str
) -> None:
    """Flows built in Python have not been through the reader of files."""
    said: dict[str, Any] = {field: "sideways"}
    wrong = replace(step, **said)

    line = complaint(GENERATE, CRITIQUE, ADJUDICATE, wrong)

    assert line == f"workflow[3].{field}: workflow[3].{field} is 'sideways' (one of: {valid})"


@pytest.mark.parametrize("rounds", [0, -1, 1001])
def test_the_number_of_rounds_is_bounded(rounds: int) -> None:
    """Every loop ends."""
    assert "from 1 to 1000" in complaint(GENERATE, max_iterations=rounds)


def test_the_policy_judge_judges_and_does_nothing_else() -> None:
    """It has no words of its own, so it cannot write or read."""
    assert "works adjudicate steps only" in complaint(replace(GENERATE, agent="policy"))
    assert complaints(GENERATE, CRITIQUE, replace(ADJUDICATE, agent="policy")) == []


def test_a_model_goes_with_one_agent() -> None:
    """The second agent does not know the first one's models."""
    step = replace(CRITIQUE, model="opus")
    several = ConstraintConfig(routing=RoutingConfig(("claude", "codex")))
    own = [Constraint("a", agents=("claude", "codex"))]

    assert "names claude, codex" in complaint(GENERATE, step, constraints=several)
    assert complaints(GENERATE, replace(step, agent="claude"), constraints=several) == []
    assert complaints(GENERATE, step) == []
    config = GenflowConfig((GENERATE, step))
    assert "names claude, codex" in str(validate_workflow(config, own)[0])
    assert validate_workflow(config, [Constraint("a")]) == []


def test_every_problem_is_reported_at_once() -> None:
    """One complaint per try costs a person one try per mistake."""
    lines = complaints(
        replace(REFINE, loop_to="x"), replace(CRITIQUE, scope="all"), max_iterations=0
    )

    assert len(lines) == 5
    assert not any("(one of: )" in line for line in lines)


def test_a_step_that_nothing_leads_to_is_named() -> None:
    """A review that is never made looks, in the file, like one that is."""
    loops = replace(REFINE, loop_to="generate")
    going_on = replace(ADJUDICATE, on_approved="continue")

    assert complaints(GENERATE, CRITIQUE, ADJUDICATE, loops, CRITIQUE, ADJUDICATE) == []
    assert complaints(GENERATE, CRITIQUE, going_on, loops, CRITIQUE) == []
    assert complaint(GENERATE, CRITIQUE, ADJUDICATE, loops, replace(CRITIQUE, name="last")) == (
        "workflow[4]: step 'last' is never reached: the step before it always loops "
        "(only an approval that does not end the run passes over a refine step)"
    )
