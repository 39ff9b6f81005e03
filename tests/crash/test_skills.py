from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.testing.crashing_store import When
from tests.crash import skill_story
from tests.crash.harness import crash_everywhere

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_skill_ends_the_same_wherever_its_run_is_killed(tmp_path: Path, when: When) -> None:
    """Rounds and reviews are counted once, and no step is given to an agent again."""
    survivals = list(crash_everywhere(skill_story.story, tmp_path, when=when))

    assert len(survivals) > 10
    for survival in survivals:
        (run,) = survival.runs.values()
        where = f"killed {when} write {survival.at}"
        assert run.status is Status.COMPLETED, where
        assert run.state["rounds"] == [1, 2], where
        assert run.state["review"] == skill_story.EXPECTED_REVIEW, where
        assert run.visits == {"write": 2, "review": 2, "fix": 1, "report": 1}, where
        assert survival.repeated == [], where
