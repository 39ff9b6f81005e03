from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.testing.crash import Story
from signoff.testing.crashing_store import When
from tests.crash import ending_story, flow_story, incremental_story, review_story
from tests.crash.harness import crash_everywhere

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("story", "calls"),
    [(flow_story.story, 10), (incremental_story.story, 10), (review_story.story, 4)],
    ids=["full", "incremental", "files"],
)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_flow_killed_at_any_write_is_still_approved(
    tmp_path: Path, when: When, story: Story, calls: int
) -> None:
    """No recorded call of a critic, a judge or an editor is made, or paid for, again."""
    survivals = list(crash_everywhere(story, tmp_path, when=when))

    whole = survivals[-1]
    (uncut,) = whole.runs.values()
    assert whole.deaths == 0
    assert len(whole.performed) == len(set(whole.performed)) > calls
    for survival in survivals:
        where = f"killed {survival.when} write {survival.at}"
        (run,) = survival.runs.values()
        assert run.status is Status.COMPLETED, where
        assert run.state == uncut.state, where
        assert survival.repeated == [], where
        assert set(survival.performed) == set(whole.performed), where


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_flow_killed_at_any_write_still_leaves_its_best_version(
    tmp_path: Path, when: When
) -> None:
    """A kill right before or after the end must not cost the user what was paid for."""
    survivals = list(crash_everywhere(ending_story.story, tmp_path, when=when))

    for survival in survivals:
        where = f"killed {survival.when} write {survival.at}"
        (run,) = survival.runs.values()
        assert run.status is Status.LIMIT, where
        assert survival.repeated == [], where
    assert survivals[-1].deaths == 0
    assert len(survivals) > 5
