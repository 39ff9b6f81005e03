from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.testing.crashing_store import When
from tests.crash import instruction_story
from tests.crash.harness import crash_everywhere

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_loses_no_instructions_and_no_reply(tmp_path: Path, when: When) -> None:
    """Each step is given to its worker once, however often the process dies."""
    survivals = list(crash_everywhere(instruction_story.story, tmp_path, when=when))

    for survival in survivals:
        (run,) = survival.runs.values()
        assert run.status is Status.COMPLETED, (survival.at, when)
        assert run.state == instruction_story.EXPECTED, (survival.at, when)
        assert survival.repeated == []
    assert len(survivals) > 5
