from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.testing import crash_at
from tests.crash import bad_stories

pytestmark = pytest.mark.slow


def test_an_effect_performed_although_its_reply_was_stored_is_found(tmp_path: Path) -> None:
    """A harness that finds nothing would make every engine look right."""
    survival = crash_at(bad_stories.repeats_itself, tmp_path / "x", at=4, when="after")

    assert survival.deaths == 1
    assert survival.runs["run"].status is Status.COMPLETED
    assert survival.repeated == ["run/one/1/1/ask#1"]


def test_an_effect_repeated_because_its_reply_was_lost_is_not_held_against_the_engine(
    tmp_path: Path,
) -> None:
    """Its end is in doubt; that is what rerunning is for."""
    survival = crash_at(bad_stories.repeats_itself, tmp_path / "x", at=4, when="before")

    assert survival.performed == ["run/one/1/1/ask#1"] * 2
    assert survival.repeated == []


def test_a_story_with_a_bug_says_so_instead_of_being_resumed_for_ever(tmp_path: Path) -> None:
    """Its own traceback is what its author needs."""
    with pytest.raises(AssertionError, match="a bug in the story"):
        crash_at(bad_stories.fails, tmp_path / "x", at=1, when="before")
