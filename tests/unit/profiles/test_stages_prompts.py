from typing import Any

import pytest

from signoff.core.context import StepContext
from signoff.profiles import FsAbility, WorkflowPhase
from signoff.profiles.session import SessionState
from signoff.profiles.stages import complete_prompt, retry_prompt

ALL = "S={{STANDARDS}} P={{PLAN}} C={{CODE}} R={{REVIEW}} F={{FEEDBACK}}"


def session_state(iteration: int = 1, **state: Any) -> SessionState:
    context = StepContext(
        "revise.prompt",
        workflow_params={"standards_bundle": "the rules\n"},
        step_state={
            "plan": "the plan\n",
            "code": {"b.py": "b = 2\n", "a.py": "a = 1\n"},
            "review": "the review\n",
            **state,
        },
        iteration=iteration,
    )
    return SessionState(context)


@pytest.mark.parametrize("ability", [FsAbility.LOCAL_READ, FsAbility.LOCAL_WRITE])
@pytest.mark.parametrize(
    ("phase", "folder"), [(WorkflowPhase.REVISE, 2), (WorkflowPhase.REVIEW, 3)]
)
def test_the_variables_hold_paths_for_a_provider_with_files(
    ability: FsAbility, phase: WorkflowPhase, folder: int
) -> None:
    """A revision is about the code and the review of the iteration before."""
    prompt = complete_prompt(ALL, session_state(3), phase, "be brief", ability)

    assert "`standards-bundle.md`" in prompt
    assert "`plan.md`" in prompt
    assert f"`iteration-{folder}/code/`" in prompt
    assert f"`iteration-{folder}/review-response.md`" in prompt
    assert "F=be brief" in prompt
    assert "the plan" not in prompt


def test_values_are_never_rendered_again() -> None:
    """A plan that mentions a variable is not a template."""
    state = session_state(plan="use {{CODE}} and {{REVIEW}}")

    assert complete_prompt("{{PLAN}}", state, WorkflowPhase.GENERATE) == (
        "use {{CODE}} and {{REVIEW}}\n"
    )


def test_a_retry_has_the_prompt_the_answer_and_the_reason() -> None:
    """In this order: the end of a long prompt is read best."""
    prompt = retry_prompt("Plan it.\n", "a ``` plan", "too short\n")

    assert prompt.startswith("Plan it.\n\n---\n\n")
    assert prompt.index("a ``` plan") < prompt.index("too short")
    assert prompt.endswith("too short\n")


def test_the_next_reviewer_gets_the_previous_review_and_the_revisers_decisions() -> None:
    """A finding that the reviser rejected with a reason must not be raised for ever."""
    state = session_state(2, revision_notes="| 1 | rejected | see ``` the plan |")

    prompt = complete_prompt("Review {{CODE}}", state, WorkflowPhase.REVIEW)

    assert "the review" in prompt
    assert "| 1 | rejected | see ``` the plan |" in prompt
    assert prompt.index("a = 1") < prompt.index("the review") < prompt.index("| 1 |")


@pytest.mark.parametrize(
    ("phase", "iteration"), [(WorkflowPhase.REVIEW, 1), (WorkflowPhase.REVISE, 2)]
)
def test_other_prompts_have_no_previous_review(phase: WorkflowPhase, iteration: int) -> None:
    """There is none before the first review, and a revision has its own variable for it."""
    assert complete_prompt("Do it.", session_state(iteration), phase) == "Do it.\n"
