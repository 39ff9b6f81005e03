from pathlib import Path

import pytest

from signoff.core.outcome import Status
from tests.crash import misbehaving_stories as stories
from tests.crash.harness import crash_at

pytestmark = pytest.mark.slow


def test_an_effect_performed_again_although_its_reply_was_stored_is_reported(
    tmp_path: Path,
) -> None:
    """A harness that finds nothing would make every engine look correct."""
    survival = crash_at(stories.repeats_its_first_effect, tmp_path / "x", at=4, when="after")

    assert survival.deaths == 1
    assert survival.runs["run"].status is Status.COMPLETED
    assert survival.repeated == ["run/one/1/1/ask#1"]


def test_an_effect_performed_again_because_its_reply_was_lost_is_not_reported(
    tmp_path: Path,
) -> None:
    """The engine cannot know whether the call succeeded, so it has to repeat it."""
    survival = crash_at(stories.repeats_its_first_effect, tmp_path / "x", at=4, when="before")

    assert survival.performed == ["run/one/1/1/ask#1"] * 2
    assert survival.repeated == []


def test_a_story_with_a_bug_fails_with_its_traceback(tmp_path: Path) -> None:
    """Resuming it again and again would hide the bug from its author."""
    with pytest.raises(AssertionError, match="a bug in the story"):
        crash_at(stories.has_a_bug, tmp_path / "x", at=1, when="before")


def test_a_story_that_hangs_fails_at_its_timeout(tmp_path: Path) -> None:
    """Neither the test nor the story's process may hang forever."""
    with pytest.raises(AssertionError, match=r"0\.2 seconds"):
        crash_at(stories.hangs, tmp_path / "x", at=1, when="before", timeout=0.2)
