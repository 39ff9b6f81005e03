from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.skills.library.test_designer import WORKFLOW
from tests.unit.skills.library.skill_runs import FAIL, PASS, run_skill

BEFORE = ["subject", "behaviors", "cases", "levels", "write", "stable"]


@pytest.mark.parametrize(
    ("coverage", "iteration", "following"),
    [("started", 1, "behaviors"), ("partial", 5, "cases"), ("complete", 1, "cases")],
)
def test_promises_are_listed_until_the_sources_are_used_up(
    coverage: str, iteration: int, following: str
) -> None:
    """A behavior that is not listed gets no test."""
    assert WORKFLOW.run("behaviors", coverage=coverage, iteration=iteration).next == following


async def test_tests_count_only_after_someone_broke_the_code(tmp_path: Path) -> None:
    """A test that has never failed may be unable to."""
    run = await run_skill(WORKFLOW, state_dir=str(tmp_path))

    assert run.steps == [*BEFORE, "break", "report"]


async def test_an_unnoticed_break_leads_to_stronger_tests_and_more_breaks(tmp_path: Path) -> None:
    """The next break may go unnoticed as well."""
    run = await run_skill(WORKFLOW, {"break": [FAIL, FAIL, PASS]}, state_dir=str(tmp_path))

    assert run.steps == [*BEFORE, *["break", "strengthen"] * 2, "break", "report"]


async def test_tests_that_stay_weak_are_a_humans_decision(tmp_path: Path) -> None:
    """They must not be reported as done."""
    run = await run_skill(WORKFLOW, {"break": [FAIL]}, state_dir=str(tmp_path))

    assert run.result.status is Status.WAITING
    assert "report" not in run.steps
