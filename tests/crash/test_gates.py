from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.testing.doubles import When
from tests.crash import gate_story
from tests.crash.harness import crash_everywhere

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_was_approved_counts_if_the_process_is_killed_at_any_write(
    tmp_path: Path, when: When
) -> None:
    """Killed between the answer and the resume, the run continues with the text of the answer.

    The file has changed by then, and what the run has read once is not read again.
    """
    survivals = list(crash_everywhere(gate_story.story, tmp_path, when=when))

    assert len(survivals) > 10
    for survival in survivals:
        where = f"killed {when} write {survival.at}"
        (run,) = survival.runs.values()
        assert run.status is Status.COMPLETED, where
        assert run.state == gate_story.EXPECTED, where
        assert survival.repeated == [], where
