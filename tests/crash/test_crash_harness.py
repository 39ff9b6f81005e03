from pathlib import Path

import pytest

from signoff.core.outcome import Status
from tests.crash import misbehaving_stories as stories
from tests.crash.harness import crash_at

pytestmark = pytest.mark.slow


def test_an_effect_is_reported_if_it_is_performed_again_although_its_reply_was_stored(
    tmp_path: Path,
) -> None:
    """A harness that finds nothing would make every engine look correct.

    If the reply was lost, the engine cannot know whether the call succeeded, and has to repeat it.
    """
    stored = crash_at(stories.repeats_its_first_effect, tmp_path / "x", at=4, when="after")
    lost = crash_at(stories.repeats_its_first_effect, tmp_path / "y", at=4, when="before")

    assert stored.deaths == 1
    assert stored.runs["run"].status is Status.COMPLETED
    assert stored.repeated == ["run/one/1/1/ask#1"]
    assert lost.performed == ["run/one/1/1/ask#1"] * 2
    assert lost.repeated == []


def test_a_story_that_fails_or_hangs_fails_the_test(tmp_path: Path) -> None:
    """Resuming it again and again would hide a bug, and no process may hang forever."""
    with pytest.raises(AssertionError, match="a bug in the story"):
        crash_at(stories.has_a_bug, tmp_path / "x", at=1, when="before")
    with pytest.raises(AssertionError, match=r"0\.2 seconds"):
        crash_at(stories.hangs, tmp_path / "y", at=1, when="before", timeout=0.2)
