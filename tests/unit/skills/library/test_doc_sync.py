from pathlib import Path

import pytest

from signoff.skills.library.doc_sync import WORKFLOW
from tests.unit.skills.library.skill_runs import reported, run_skill


@pytest.mark.parametrize(
    ("coverage", "iteration", "following"),
    [("started", 1, "check"), ("partial", 2, "check"), ("partial", 5, "missing")],
)
def test_claims_are_checked_until_each_has_a_verdict(
    coverage: str, iteration: int, following: str
) -> None:
    """The last pages of a document are as likely to be wrong as the first."""
    assert WORKFLOW.run("check", coverage=coverage, iteration=iteration).next == following


async def test_a_check_changes_nothing(tmp_path: Path) -> None:
    """A user who asks what is wrong has not asked for edits."""
    replies = {"decide": [reported()]}

    run = await run_skill(WORKFLOW, replies, mode="check", state_dir=str(tmp_path))

    assert run.steps == ["scope", "claims", "check", "missing", "decide", "report"]


async def test_every_edit_is_checked_like_the_claim_it_replaces(tmp_path: Path) -> None:
    """A correction is a new claim."""
    run = await run_skill(WORKFLOW, state_dir=str(tmp_path))

    assert run.steps[-3:] == ["edit", "recheck", "report"]


async def test_claims_of_later_rounds_are_added_to_the_first(tmp_path: Path) -> None:
    """The worker of a run is asked again until it reports that all claims are checked."""
    rounds = [reported(coverage=each) for each in ("started", "partial", "complete")]

    run = await run_skill(WORKFLOW, {"check": rounds}, state_dir=str(tmp_path))

    assert run.steps.count("check") == 3
