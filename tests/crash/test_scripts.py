from pathlib import Path

import pytest

from signoff.testing import crash_everywhere
from signoff.testing.crashing_store import When
from tests.crash import script_story

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_rule_that_is_used_up_stays_so_after_a_kill(tmp_path: Path, when: When) -> None:
    """A resumed run got answers again that it had used, so it never came to the next one."""
    survivals = list(crash_everywhere(script_story.tell, tmp_path, when=when))

    for survival in survivals:
        (run,) = survival.runs.values()
        assert run.state["drafts"] == script_story.EXPECTED, (survival.at, when)
    assert len(survivals) > 5
