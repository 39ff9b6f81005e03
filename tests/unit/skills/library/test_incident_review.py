from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.skills.library.incident_review import WORKFLOW
from tests.unit.skills.library.skill_runs import FAIL, PASS, reported, run_skill


@pytest.mark.parametrize(
    ("confidence", "iteration", "following"),
    [
        ("exploring", 1, "conditions"),
        ("medium", 4, "conditions"),
        ("medium", 5, "challenge"),
        ("high", 1, "challenge"),
        ("certain", 1, "challenge"),
    ],
)
def test_the_search_does_not_end_at_the_first_cause(
    confidence: str, iteration: int, following: str
) -> None:
    """The change that triggered an incident is seldom what made it possible."""
    output = WORKFLOW.run("conditions", confidence=confidence, iteration=iteration)

    assert output.next == following


async def test_actions_are_derived_only_after_the_explanation_was_challenged(
    tmp_path: Path,
) -> None:
    """A change for a condition that did not exist costs as much as one that helps."""
    rounds = [reported(confidence=each) for each in ("low", "high")]

    run = await run_skill(WORKFLOW, {"conditions": rounds}, state_dir=str(tmp_path))

    search = ["conditions", "conditions", "challenge", "response", "actions"]
    assert run.steps == ["incident", "timeline", *search, "write", "examine", "handover"]


async def test_a_review_is_handed_over_only_after_it_passed(tmp_path: Path) -> None:
    """Readers cannot see what is stated more firmly than its evidence allows."""
    run = await run_skill(WORKFLOW, {"examine": [FAIL, PASS]}, state_dir=str(tmp_path))

    assert run.steps[-5:] == ["write", "examine", "revise", "examine", "handover"]


async def test_a_review_that_never_passes_is_a_humans_decision(tmp_path: Path) -> None:
    """The people involved must not be handed a review that no one could support."""
    run = await run_skill(WORKFLOW, {"examine": [FAIL]}, state_dir=str(tmp_path))

    assert run.result.status is Status.WAITING
    assert "handover" not in run.steps
