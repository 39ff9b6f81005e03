"""Resumes runs with instructions that a release left in the middle."""

from contextlib import closing
from pathlib import Path

import pytest

from signoff.core.outcome import Status
from signoff.runtime.engine import Engine
from signoff.testing import ScriptedAgent
from tests.replay.instructions import NAME, STORY
from tests.replay.recordings import recordings_of, restore
from tests.run_stores import moved_here, open_address


@pytest.mark.parametrize("recorded", recordings_of("instructions"), ids=lambda path: path.stem)
async def test_a_run_goes_on_and_its_remaining_instructions_are_handed_out(
    tmp_path: Path, recorded: Path
) -> None:
    """The definition is still the same, and no recorded verdict is asked for again."""
    answered = recorded.stem.endswith("-answered")
    restore(recorded, tmp_path / "signoff.db")
    agent = ScriptedAgent().on("# Review it", {"status": "pass", "notes": "now"})
    agent.on("# Write it down", "All is well.")
    roles = {"worker": "claude"}

    with closing(open_address(moved_here(tmp_path / "signoff.db"))) as store:
        async with Engine(store, agents={"claude": agent}, default_roles=roles) as engine:
            result = await engine.resume(NAME, STORY)

    assert result.status is Status.COMPLETED
    notes = "then" if answered else "now"
    assert result.state == {"review": {"status": "pass", "notes": notes}, "write": "All is well."}
    asked = [line for prompt in agent.prompts for line in prompt.splitlines() if line[:2] == "# "]
    assert asked == ([] if answered else ["# Review it"]) + ["# Write it down"]
