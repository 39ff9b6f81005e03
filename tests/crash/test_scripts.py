from pathlib import Path

import pytest

from signoff.testing.crashing_store import When
from tests.crash import script_story
from tests.crash.harness import crash_everywhere

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_script_rule_stays_used_up_after_a_kill(tmp_path: Path, when: When) -> None:
    """Otherwise a resumed run gets an answer that it already had, and never reaches the next."""
    survivals = list(crash_everywhere(script_story.story, tmp_path, when=when))

    for survival in survivals:
        (run,) = survival.runs.values()
        assert run.state["drafts"] == script_story.EXPECTED, (survival.at, when)
    assert len(survivals) > 5
