from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.testing import Survival
from signoff.testing.doubles import When
from tests.crash import report_story
from tests.crash.harness import crash_at, crash_everywhere


def check(survival: Survival) -> None:
    """Checks what no kill may change."""
    where = f"killed {survival.when} write {survival.at}"
    (run,) = survival.runs.values()
    assert run.status is Status.COMPLETED, where
    assert run.state == report_story.EXPECTED, where
    assert survival.repeated == [], where


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_run_killed_at_any_write_ends_in_the_same_result(tmp_path: Path, when: When) -> None:
    """No finished effect is repeated, none is skipped, and the result is the same."""
    survivals = list(crash_everywhere(report_story.story, tmp_path, when=when))

    for survival in survivals:
        check(survival)
    whole = survivals[-1]
    assert whole.deaths == 0
    assert len(survivals) > 20
    assert len(whole.performed) == len(set(whole.performed))
    for survival in survivals:
        assert set(survival.performed) == set(whole.performed)
        assert len(survival.performed) <= len(whole.performed) + len(report_story.TOPICS)


@pytest.mark.parametrize("at", [4, 7])
def test_a_run_still_ends_if_every_process_of_it_is_killed(tmp_path: Path, at: int) -> None:
    """A run makes progress even on a machine that crashes every few minutes."""
    survival = crash_at(report_story.story, tmp_path / "again", at=at, when="after", again=True)

    check(survival)
    assert survival.deaths > 2
