from typing import Any

import pytest
from pydantic import ValidationError

from signoff.review.flow.model import GenflowConfig, StepKind, WorkflowStep
from signoff.review.flow.sections import ConstraintConfig, PriorityRoute, RoutingConfig, RoutingRule
from signoff.review.flow.validation import unknown_agents, validate_workflow
from signoff.review.pure.constraint import Constraint
from tests.unit.review.flow.harness import changed, constraint, step

GENERATE = WorkflowStep(step=StepKind.GENERATE)
CRITIQUE = WorkflowStep(step=StepKind.CRITIQUE)
ADJUDICATE = WorkflowStep(step=StepKind.ADJUDICATE)
REFINE = WorkflowStep(step=StepKind.REFINE)


def complaints(*steps: WorkflowStep, **fields: Any) -> list[str]:
    return [str(problem) for problem in validate_workflow(GenflowConfig(workflow=steps, **fields))]


def complaint(*steps: WorkflowStep, **fields: Any) -> str:
    (line,) = complaints(*steps, **fields)
    return line


def test_a_flow_starts_with_a_generate_step() -> None:
    """Critics, judges and refiners need an artifact."""
    assert "workflow is empty" in complaint()
    assert "there is no generate step" in complaint(CRITIQUE, ADJUDICATE)
    assert "the first step is critique" in complaint(CRITIQUE, GENERATE)
    assert "the first step is adjudicate" in complaint(ADJUDICATE, GENERATE, allow_unreviewed=True)


def test_a_flow_that_could_pass_without_a_review_is_refused() -> None:
    """A judge alone, a judge before its critics, no constraints, or none that is selected."""
    usual = GenflowConfig(workflow=(GENERATE, CRITIQUE, ADJUDICATE))
    narrow = GenflowConfig(workflow=(GENERATE, changed(CRITIQUE, constraints=["x*"]), ADJUDICATE))
    clear = Constraint("clear")

    assert "before any critique step" in complaint(GENERATE, ADJUDICATE)
    assert "before any critique step" in complaint(GENERATE, ADJUDICATE, CRITIQUE)
    assert complaints(GENERATE, ADJUDICATE, allow_unreviewed=True) == []
    assert complaints(GENERATE, CRITIQUE) == []
    assert [len(validate_workflow(usual, each)) for each in ([], [clear], None)] == [1, 0, 0]
    assert "select one of: clear" in str(validate_workflow(narrow, [clear])[0])


def test_a_refine_step_needs_a_judge_before_it() -> None:
    """A refine step works from a judge's work order."""
    early = complaint(GENERATE, CRITIQUE, REFINE, ADJUDICATE)

    assert early == (
        "workflow[2]: the refine step at 2 comes before any adjudicate step "
        "(only a judge decides what to fix)"
    )


def test_two_steps_of_one_name_are_refused() -> None:
    """A loop to that name would be ambiguous."""
    named = changed(CRITIQUE, name="review")

    assert "'review' is the name of workflow[1] and of workflow[2]" in complaint(
        GENERATE, named, named
    )
    assert "'critique_2' is the name of" in complaint(
        GENERATE, changed(CRITIQUE, name="critique_2"), CRITIQUE, CRITIQUE
    )


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nowhere", "an unknown step (one of: generate, review, judge)"),
        ("late", "which is not an earlier step"),
        ("refine", "which is not an earlier step"),
    ],
)
def test_a_loop_leads_to_an_earlier_step(target: str, words: str) -> None:
    """Any other jump would skip work or go nowhere."""
    steps = (
        GENERATE,
        changed(CRITIQUE, name="review"),
        changed(ADJUDICATE, name="judge"),
        changed(REFINE, loop_to=target),
        changed(CRITIQUE, name="late"),
    )

    assert words in complaint(*steps)


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
def test_an_unknown_value_is_reported_with_the_known_ones(
    step: WorkflowStep, field: str, valid: str
) -> None:
    """Steps built in Python are checked like those of files, as soon as they are built."""
    first, _, last = valid.partition(", ")

    with pytest.raises(ValidationError, match=f"(?s){field}.*'{first}'.*{last.split(', ')[-1]}'"):
        changed(step, **{field: "sideways"})


def test_the_policy_judge_judges_and_does_nothing_else() -> None:
    """It has no model, so it cannot write or review."""
    assert "only for adjudicate steps" in complaint(changed(GENERATE, agent="policy"))
    assert complaints(GENERATE, CRITIQUE, changed(ADJUDICATE, agent="policy")) == []


def test_a_model_goes_with_one_agent() -> None:
    """The second agent does not know the first one's models."""
    step = changed(CRITIQUE, model="opus")
    several = ConstraintConfig(routing=RoutingConfig(default_agents=("claude", "codex")))
    own, any_ = [Constraint("a", agents=("claude", "codex"))], [Constraint("a")]

    def found(step: WorkflowStep, known: list[Constraint], **config: Any) -> str:
        flow = GenflowConfig(workflow=(GENERATE, step), **config)
        return "".join(map(str, validate_workflow(flow, known)))

    assert "names claude, codex" in found(step, any_, constraints=several)
    assert "names claude, codex" in found(step, own)
    assert found(changed(step, agent="claude"), any_, constraints=several) == ""
    assert found(step, any_) == ""


def test_a_step_that_is_never_reached_is_reported() -> None:
    """In the file, a review that never happens looks like any other."""
    loops = changed(REFINE, loop_to="generate")
    going_on = changed(ADJUDICATE, on_approved="continue")

    assert complaints(GENERATE, CRITIQUE, ADJUDICATE, loops, CRITIQUE, ADJUDICATE) == []
    assert complaints(GENERATE, CRITIQUE, going_on, loops, CRITIQUE) == []
    assert complaint(GENERATE, CRITIQUE, ADJUDICATE, loops, changed(CRITIQUE, name="last")) == (
        "workflow[4]: step 'last' is never reached: the step before it always loops "
        "(only a pass that does not end the run skips a refine step)"
    )


def test_a_step_built_in_python_has_only_keys_of_its_kind() -> None:
    """A judge with a key of a sign-off looks as if a human had to approve; nobody was asked."""
    judge = changed(ADJUDICATE, presence=True)

    assert complaint(GENERATE, CRITIQUE, judge).endswith(
        "workflow[2].presence is not a key of adjudicate steps (only sign_off steps have it)"
    )


def test_a_deadline_does_not_sign_off_where_presence_is_required() -> None:
    """One would only have to wait for an approval that no one has signed."""
    sign_off = WorkflowStep(step=StepKind.SIGN_OFF, presence=True, deadline=60, default="approve")

    (found,) = complaints(GENERATE, CRITIQUE, ADJUDICATE, sign_off)

    assert "requires presence" in found
    assert complaints(GENERATE, CRITIQUE, ADJUDICATE, changed(sign_off, default="reject")) == []


KNOWN = ("claude", "codex")


def test_every_key_that_can_name_an_agent_is_checked() -> None:
    """An unknown judge would otherwise be noticed after the critics were paid."""
    routing = RoutingConfig(
        default_agents=("a",),
        rules=(RoutingRule(match="x*", agents=("b", "claude")),),
        priority_routing=(PriorityRoute(range=(1, 5), agents=("c",)),),
    )
    config = GenflowConfig(
        workflow=(
            step("generate", agent="d"),
            step("critique"),
            step("adjudicate", agent="policy"),
        ),
        constraints=ConstraintConfig(routing=routing),
    )

    found = unknown_agents(config, [constraint("clear", agents=("e", "codex"))], KNOWN)

    assert [mistake.path[:3] for mistake in found] == [
        ("workflow", 0, "agent"),
        ("constraints", "routing", "default_agents"),
        ("constraints", "routing", "rules"),
        ("constraints", "routing", "priority_routing"),
        ("constraints",),
    ]


def test_without_a_list_of_agents_every_name_is_accepted() -> None:
    """Programs pass their own agents when they run a flow."""
    config = GenflowConfig(workflow=(step("generate", agent="mine"),))

    assert unknown_agents(config, [], None) == []
