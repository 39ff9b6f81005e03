from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.testing import Survival
from signoff.testing.crashing_store import When
from tests.crash import pair_story
from tests.crash.harness import crash_at, crash_everywhere

pytestmark = pytest.mark.slow

SLOGANS = {
    "simple": ["slogan 1", "slogan 2", "slogan 3"],
    "crowded": ["slogan 1, version 1", "slogan 2, version 1", "slogan 3, version 2"],
}


def check(survival: Survival, story: str) -> None:
    """Checks what no kill may change."""
    where = f"killed {survival.when} write {survival.at}"
    (run,) = survival.runs.values()
    assert run.status is Status.COMPLETED, where
    turns = run.state["turns"]
    assert [turn["text"] for turn in turns] == SLOGANS[story], where
    assert [turn["approved"] for turn in turns] == [False, False, True], where
    assert survival.repeated == [], where


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("story", list(SLOGANS))
def test_a_pair_killed_at_any_write_has_the_same_turns_and_repeats_no_finished_call(
    tmp_path: Path, story: str, when: When
) -> None:
    """Each call was paid for; no turn may be lost or made twice."""
    survivals = list(crash_everywhere(getattr(pair_story, story), tmp_path, when=when))

    whole = survivals[-1]
    assert whole.deaths == 0
    assert len(survivals) > 8
    assert len(whole.performed) == len(set(whole.performed)) == {"simple": 7, "crowded": 27}[story]
    for survival in survivals:
        check(survival, story)
        assert set(survival.performed) == set(whole.performed)


def test_a_pair_ends_although_every_process_of_it_is_killed(tmp_path: Path) -> None:
    """On a machine that crashes all the time it still makes progress."""
    survival = crash_at(pair_story.crowded, tmp_path / "again", at=4, when="after", again=True)

    check(survival, "crowded")
    assert survival.deaths > 2
