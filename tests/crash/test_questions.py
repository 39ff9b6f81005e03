from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.testing.crashing_store import When
from tests.crash import question_story
from tests.crash.harness import crash_everywhere

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_loses_no_question_and_no_answer(tmp_path: Path, when: When) -> None:
    """Neither the reply that asked nor the one with the answers is paid for twice."""
    survivals = list(crash_everywhere(question_story.story, tmp_path, when=when))

    assert len(survivals) > 5
    for survival in survivals:
        (run,) = survival.runs.values()
        assert run.status is Status.COMPLETED, (survival.at, when)
        assert run.state == question_story.EXPECTED, (survival.at, when)
        assert survival.repeated == []
