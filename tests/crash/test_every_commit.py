from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.testing import Survival, crash_at, crash_everywhere
from signoff.testing.crashing_store import When
from tests.crash import story

pytestmark = pytest.mark.slow


def check(survival: Survival) -> None:
    """Asserts what no kill may change."""
    where = f"killed {survival.when} write {survival.at}"
    (run,) = survival.runs.values()
    assert run.status is Status.COMPLETED, where
    assert run.state == story.EXPECTED, where
    assert survival.repeated == [], where


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_run_killed_at_any_write_ends_in_the_same_result(tmp_path: Path, when: When) -> None:
    """No finished effect is performed again, none is left out, and nothing else changes."""
    survivals = list(crash_everywhere(story.tell, tmp_path, when=when))

    for survival in survivals:
        check(survival)
    whole = survivals[-1]
    assert whole.deaths == 0
    assert len(survivals) > 20
    assert len(whole.performed) == len(set(whole.performed))
    for survival in survivals:
        assert set(survival.performed) == set(whole.performed)
        assert len(survival.performed) <= len(whole.performed) + len(story.TOPICS)


@pytest.mark.parametrize("at", [4, 7])
def test_a_run_whose_every_process_is_killed_still_gets_to_its_end(tmp_path: Path, at: int) -> None:
    """A machine that dies every few minutes must not keep a run from ever finishing."""
    survival = crash_at(story.tell, tmp_path / "again", at=at, when="after", again=True)

    check(survival)
    assert survival.deaths > 2
