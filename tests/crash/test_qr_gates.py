from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.skills.qr import qr_file, read_record
from signoff.testing.doubles import When
from tests.crash import qr_gate_story
from tests.crash.harness import crash_everywhere

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_gate_that_is_killed_at_any_write_decides_the_same(tmp_path: Path, when: When) -> None:
    """No reviewer is paid twice, and no iteration is counted twice or lost."""
    survivals = list(crash_everywhere(qr_gate_story.story, tmp_path, when=when))

    assert len(survivals) > 20
    for survival in survivals:
        where = f"killed {when} write {survival.at}"
        (run,) = survival.runs.values()
        folder = tmp_path / f"{when}-{survival.at}" / qr_gate_story.STATE
        found = read_record(qr_file(folder, qr_gate_story.PHASE))
        assert run.status is Status.COMPLETED, where
        assert run.state["gate"]["status"] == "pass", where
        assert (folder / qr_gate_story.ASKED).exists(), where
        assert run.visits == {"gate": 2, "fix": 1}, where
        assert [item.status for item in found.items] == ["PASS", "PASS"], where
        assert found.iteration == 2, where
        assert survival.repeated == [], where
