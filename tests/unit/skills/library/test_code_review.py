from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.skills.library.code_review import WORKFLOW
from tests.unit.skills.library.skill_runs import FAIL, PASS, reported, run_skill

READING = ["scope", "context", "inspect"]


@pytest.mark.parametrize(
    ("coverage", "iteration", "following"),
    [
        ("started", 1, "inspect"),
        ("partial", 4, "inspect"),
        ("partial", 5, "prove"),
        ("complete", 1, "prove"),
    ],
)
def test_the_change_is_read_part_by_part(coverage: str, iteration: int, following: str) -> None:
    """A large change is not judged by its first files."""
    assert WORKFLOW.run("inspect", coverage=coverage, iteration=iteration).next == following


@pytest.mark.parametrize(("mode", "following"), [("quick", "report"), ("full", "verify")])
def test_the_mode_decides_whether_there_is_a_second_reviewer(mode: str, following: str) -> None:
    """The user may do without one for a small change."""
    assert WORKFLOW.run("prove", mode=mode).next == following


async def test_a_quick_review_stays_quick_until_its_end(tmp_path: Path) -> None:
    """The mode that a run is started with counts although the worker does not report it."""
    replies = {"prove": [reported()]}

    run = await run_skill(WORKFLOW, replies, mode="quick", state_dir=str(tmp_path))

    assert run.steps == [*READING, "prove", "report"]


async def test_objections_are_settled_before_the_review_is_written(tmp_path: Path) -> None:
    """The author must not get a finding that the second reviewer refuted."""
    run = await run_skill(WORKFLOW, {"verify": [FAIL, PASS]}, state_dir=str(tmp_path))

    assert run.steps == [*READING, "prove", "verify", "rework", "verify", "report"]
    assert run.result.status is Status.COMPLETED
    rework = run.prompts[run.steps.index("rework")]
    assert FAIL["notes"] in rework


async def test_reviewers_that_never_agree_are_a_humans_decision(tmp_path: Path) -> None:
    """Two agents could argue forever, at the user's expense."""
    run = await run_skill(WORKFLOW, {"verify": [FAIL]}, state_dir=str(tmp_path))

    assert run.result.status is Status.WAITING
    assert run.steps.count("verify") == 3
    assert "report" not in run.steps
